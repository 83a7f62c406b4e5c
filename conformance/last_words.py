"""What a rank said, cut to what tells a reader something: a student's own lines, an abort's reason, their own frames.

When a signal ends a process, C++ and Python write pages: the reason stands first, then stacks of every thread through
the suite and torch, then the list of all extension modules. Knows text only.
"""

from __future__ import annotations

import re
from pathlib import Path

MAX_LINES = 6  # of what a rank printed itself
_FATAL = re.compile(r"^(Fatal Python error: |Thread 0x|Current thread 0x)", re.MULTILINE)
_MODULES = re.compile(r"^Extension modules: .*\n?", re.MULTILINE)
_FRAME = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)', re.MULTILINE)
_SUITE = str(Path(__file__).resolve().parents[1])
_NOT_THEIRS = (
    *("/torch/", "/lib/python", "/site-packages/", "<"),
    *(f"{_SUITE}/{part}" for part in ("conformance/", "fixtures/")),
    *(f"{_SUITE}/impls/{part}.py" for part in ("loading", "normalise", "handover", "mesh")),
)
_REASON = re.compile(r"^ *what\(\): +")
_NOISE = re.compile(r"^terminate called (after throwing an instance of|without an active exception)")


def telling(text: str) -> str:
    """The lines to show in a terminal; empty when there are none."""
    fatal = _FATAL.search(text)
    spoken, stacks = (text[: fatal.start()], text[fatal.start() :]) if fatal else (text, "")
    reasons: list[str] = []
    lines: list[str] = []
    for line in spoken.splitlines():
        if _REASON.match(line):
            reasons.append(_REASON.sub("", line))
        elif line.strip() and not _NOISE.match(line):
            lines.append(line)
    if len(lines) > MAX_LINES:
        half = MAX_LINES // 2
        lines = [*lines[:half], f"… {len(lines) - MAX_LINES} more lines …", *lines[-half:]]
    return "\n".join([*reasons, *dict.fromkeys(_own_frames(stacks)), *lines])


def kept(text: str, limit: int) -> str:
    """The whole but for the list of extension modules; what is too long keeps its head and its tail."""
    text = _MODULES.sub("", text)
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def _own_frames(stacks: str) -> list[str]:
    return [
        f"at {frame['file']}:{frame['line']} in {frame['function']}"
        for frame in _FRAME.finditer(stacks)
        if not any(part in frame["file"] for part in _NOT_THEIRS)
    ]
