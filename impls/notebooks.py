"""What a file that was a notebook still has of it: lines that only IPython understands, and the way to a plain file."""

from __future__ import annotations

import re
from pathlib import Path

_OWN = re.compile(
    r"\s*(\w+\s*=\s*)?(!|%{1,2})[A-Za-z]"  # `!pip install x`, `%time f()`, `files = !ls`
    r"|[^#]*\bget_ipython\(\)"  # what an export makes of them
)
_MOST_TOLD = 4


def export(notebook: str) -> str:
    """How a notebook becomes a file that can be checked."""
    return f"jupyter nbconvert --to script {notebook}"


def is_only_there(line: str) -> bool:
    """Whether a line of text is one that only a notebook can run."""
    return _OWN.match(line) is not None


def left_in(path: Path) -> str:
    """A sentence about the lines of a file that only a notebook can run; empty where there is none."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = [str(number) for number, line in enumerate(text.splitlines(), 1) if is_only_there(line)]
    if not found:
        return ""
    more = f" and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
    return (
        f"Only a notebook can run {path.name}:{', '.join(found[:_MOST_TOLD])}{more}. Delete such lines, or put # "
        "before them; what they install, install beforehand."
    )
