"""The digest of report.json for whoever started the run, over a pipe: files can be written by others."""

from __future__ import annotations

import contextlib
import hashlib
import os

VARIABLE = "LOCKSTEP_RECEIPT"  # the number of the descriptor that the digest is written to


def give(text: str) -> None:
    """Write the SHA-256 of a report's text, as 64 hexadecimal digits, where anybody waits for it."""
    number = os.environ.get(VARIABLE, "")
    if number.isdigit():
        with contextlib.suppress(OSError):  # nobody waits any more
            os.write(int(number), digest(text.encode()).encode())


def digest(content: bytes) -> str:
    """As `give` gives it."""
    return hashlib.sha256(content).hexdigest()
