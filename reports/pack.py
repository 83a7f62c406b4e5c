"""Many similar texts in little room: what the page shows on demand travels compressed inside it.

Evidence cards repeat the same words thousands of times. Gzipped and in base64 they take a tenth of their room, and the
browser parses only those that are opened.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence

LEVEL = 6


def packed(texts: Sequence[str]) -> str:
    """The texts as base64 of the gzip of a JSON list; the same for the same texts."""
    raw = json.dumps(list(texts), ensure_ascii=False).encode()
    return base64.b64encode(gzip.compress(raw, LEVEL, mtime=0)).decode()


def unpacked(text: str) -> list[str]:
    """What was packed; the page's script does the same."""
    found = json.loads(gzip.decompress(base64.b64decode(text)))
    return [str(item) for item in found]
