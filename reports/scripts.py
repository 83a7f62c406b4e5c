"""The scripts that show a fault without Lockstep: files of the report folder that results name."""

from __future__ import annotations

import contextlib
from collections.abc import Container
from pathlib import Path

FOLDER = "reproduce"


def remove_old(folder: Path, keep: Container[str]) -> None:
    """Remove the scripts that an earlier run left in the report folder."""
    for path in (folder / FOLDER).glob("*.py"):
        if path.name not in keep:
            with contextlib.suppress(OSError):
                path.unlink()
