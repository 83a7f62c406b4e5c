"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path


class CannotWrite(Exception):
    """A file of the report could not be written; the text is a sentence for the user."""


def write_whole(path: Path, text: str) -> None:
    """Write one file; see ``write_together``."""
    write_together({path: text})


def write_together(texts: Mapping[Path, str]) -> None:
    """Write each text to its path as UTF-8: readers see the old file or the new one, never a part of it.

    All are written beside their places before the first takes its place, so that a full disk leaves the old set intact.
    Raises CannotWrite (full disk, no permission, no such folder); nothing half-written is left then.
    """
    unfinished: dict[Path, Path] = {}
    at = next(iter(texts), Path())
    try:
        for at, text in texts.items():
            at.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=f".{at.name}.", suffix=".unfinished", dir=at.parent)
            unfinished[at] = Path(name)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            unfinished[at].chmod(0o644)
        for at in texts:
            unfinished[at].replace(at)
            del unfinished[at]
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotWrite(f"{at} could not be written: {reason}; nothing half-written was left") from error
    finally:
        for leftover in unfinished.values():
            with contextlib.suppress(OSError):
                leftover.unlink()


def refuse_to_replace(targets: Iterable[Path], sources: Iterable[Path]) -> None:
    """Raise CannotWrite where a file that is to be written is one of those that are read."""
    read = {os.path.realpath(path) for path in sources}
    for path in targets:
        if os.path.realpath(path) in read:
            raise CannotWrite(f"{path} is read by this command and would be replaced; choose another place")
