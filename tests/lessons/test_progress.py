"""The line that shows how far a lesson has come: on a terminal only, and gone in the end."""

from __future__ import annotations

import io
import threading
from pathlib import Path

from lessons.progress import counted, during


class Terminal(io.StringIO):
    """A stream that somebody looks at; `reached` is set once `wanted` has been drawn."""

    def __init__(self, wanted: str) -> None:
        super().__init__()
        self.wanted = wanted
        self.reached = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.wanted in text:
            self.reached.set()
        return written


def test_steps_are_counted_on_a_terminal_and_the_line_is_cleared() -> None:
    terminal = Terminal("step 7 of 20")
    with counted("step", 20, terminal) as path:
        assert path is not None
        Path(path).write_text("7")
        assert terminal.reached.wait(10)
    assert terminal.getvalue().endswith("\r")
    assert not Path(path).exists()


def test_nothing_is_drawn_where_nobody_looks() -> None:
    stream = io.StringIO()
    with counted("step", 20, stream) as path:
        assert path is None
    with during("ring all-reduce", stream):
        pass
    assert stream.getvalue() == ""


def test_what_is_going_on_is_named_while_it_does() -> None:
    terminal = Terminal("ring all-reduce")
    with during("ring all-reduce", terminal):
        assert terminal.reached.is_set()
    assert terminal.getvalue().endswith("\r")
