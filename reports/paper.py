"""Lines for a terminal: as wide as it is, and inert whatever an implementation put into a name or a message."""

from __future__ import annotations

import shutil
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reports.text import safe

NARROWEST, WIDEST = 40, 120  # columns; wider lines are hard to read
_TAB = "    "


def columns() -> int:
    """How many columns to write: the terminal's (or COLUMNS), within reason; 100 where nobody says."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((100, 24)).columns))


def width(text: str) -> int:
    """How many columns a terminal gives to ``text``."""
    return sum(_width(character) for character in text)


def line(text: object) -> str:
    """One inert line: line breaks become a sign."""
    return printable(text).replace("\n", "⏎")


def printable(text: object) -> str:
    """Text without anything that acts on a terminal; line breaks stay."""
    return safe(text).replace("\t", _TAB)


def clipped(text: str, room: int) -> str:
    """``text`` in at most ``room`` columns, with a sign where something is cut off."""
    if width(text) <= room:
        return text
    kept = ""
    for character in text:
        if width(kept) + _width(character) > room - 1:
            break
        kept += character
    return kept + "…"


def wrapped(text: object, room: int, *, indent: str = "") -> list[str]:
    """Each line of ``text`` in lines of at most ``room`` columns; words that are longer are broken."""
    found = []
    for part in printable(text).splitlines() or [""]:
        found += _folded(part, max(room - len(indent), 8)) or [""]
    return [indent + part for part in found]


def fields(pairs: Mapping[str, object], room: int, *, indent: str = "  ", whole: Iterable[str] = ()) -> Iterator[str]:
    """Names on the left, texts on the right; those in ``whole`` (commands) keep their lines as they are."""
    shown = {name: text for name, text in pairs.items() if str(text).strip()}
    margin = max(map(len, shown), default=0) + 2
    as_they_are = frozenset(whole)
    for name, text in shown.items():
        left = room - len(indent) - margin
        lines = printable(text).splitlines() if name in as_they_are else wrapped(text, left)
        for number, part in enumerate(lines):
            yield f"{indent}{name if number == 0 else '':<{margin}}{part}".rstrip()


def table(rows: Sequence[Sequence[object]], room: int, *, left: int = 1) -> list[str]:
    """Rows in columns: the first ``left`` of them to the left, figures to the right; lines are cut at ``room``."""
    texts = [[line(cell) for cell in row] for row in rows]
    widths = [max(width(cell) for cell in column) for column in zip(*texts, strict=True)]
    return [
        clipped("  ".join(_padded(cell, widths[i], i < left) for i, cell in enumerate(row)).rstrip(), room)
        for row in texts
    ]


def _padded(cell: str, to: int, is_left: bool) -> str:
    space = " " * (to - width(cell))
    return cell + space if is_left else space + cell


def _folded(part: str, room: int) -> list[str]:
    lines = textwrap.wrap(part, room, break_on_hyphens=False)
    return lines if all(width(found) <= room for found in lines) else textwrap.wrap(part, max(room // 2, 4))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
