"""How far work on ranks has come: a line on a terminal that is drawn over, and nothing where nobody looks."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

PERIOD_S = 0.2


@contextlib.contextmanager
def counted(what: str, total: int, stream: TextIO | None = None) -> Iterator[str | None]:
    """A file for the number of the latest of `total` steps, shown while it changes; None where it is not shown."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        file, done = Path(folder) / "step", threading.Event()
        thread = threading.Thread(target=_show, args=(what, total, file, done, stream), daemon=True)
        thread.start()
        try:
            yield str(file)
        finally:
            done.set()
            thread.join()


def _show(what: str, total: int, file: Path, done: threading.Event, stream: TextIO) -> None:
    line = ""
    while not done.wait(PERIOD_S):
        text = file.read_text() if file.exists() else ""
        line = f"{what} {text if text.isdigit() else 0} of {total}"
        stream.write(f"\r{line}")
        stream.flush()
    stream.write("\r" + " " * len(line) + "\r")
    stream.flush()


@contextlib.contextmanager
def during(what: str, stream: TextIO | None = None) -> Iterator[None]:
    """Say what is going on while it does."""
    stream = stream or sys.stderr
    if stream.isatty():
        stream.write(f"\r{what} …")
        stream.flush()
    try:
        yield
    finally:
        if stream.isatty():
            stream.write("\r" + " " * (len(what) + 2) + "\r")
            stream.flush()
