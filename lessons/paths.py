"""Whether a file can be written where an option says, found out before there is anything to write."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

PICTURES = (".svg", ".png")


def trouble(option: str, path: Path, endings: Sequence[str] = (), *, makes_folders: bool = False) -> str:
    """Why `option` cannot have this path, and what to give instead; empty when it can. Leaves nothing behind.

    Without `makes_folders` the path's folder has to be there.
    """
    if endings and path.suffix not in endings:
        return f"{option} {path}: give the path the ending {' or '.join(endings)}"
    if path.is_dir():
        return f"{option} {path}: this is a folder; give the path of a file"
    folder = path.absolute().parent
    if not makes_folders and not folder.is_dir():
        return f"{option} {path}: there is no folder {path.parent}; make it first"
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{option} {path}: nothing can be written in {folder} ({error.strerror}); give another path"
