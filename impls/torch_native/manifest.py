"""Claims that PyTorch breaks by design, each with the reason and the source; a check confirms that it is still so."""

from __future__ import annotations

from typing import Any

MANIFEST: dict[str, Any] = {
    "deviates": {},
}
