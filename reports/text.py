"""Text that an implementation had a hand in, made safe to keep, print and read.

Terminal escapes go, control characters and invisible direction marks become visible, lone surrogates are replaced, and
what is too long keeps its head and its tail. HTML is not escaped here: the page's templates do that for every text.
"""

from __future__ import annotations

import re
import unicodedata

NAME_LIMIT = 300  # names, cases, commands' parts
LINE_LIMIT = 4_000  # expected, observed, message
OUTPUT_LIMIT = 8_000  # what one rank printed, or its traceback

# CSI, OSC and the other string sequences, two-byte escapes. The repeats are bounded: this runs over hostile text.
_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]{0,40}[ -/]{0,8}[@-~]|[\]PX^_][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|[ -/]{0,8}[0-Z\\^-~])"
)
_JOINERS = {0x200C, 0x200D}  # Persian is written with them
_INVISIBLE = [
    *range(0x80, 0xA0),  # C1 controls: 0x9b starts a terminal sequence too
    0x2028,
    0x2029,
    0x115F,  # letters without a form: two names that look the same
    0x1160,
    0x3164,
    0xFFA0,
    # Format characters: embeddings and overrides of direction, soft hyphens, zero widths, tags.
    *(code for code in range(0x10000) if unicodedata.category(chr(code)) == "Cf" and code not in _JOINERS),
    *range(0xE0000, 0xE0080),
]
_VISIBLE: dict[int, str] = {code: f"⟨U+{code:04X}⟩" for code in _INVISIBLE}
_VISIBLE |= {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
_VISIBLE |= {0x7F: "\u2421"}
_VISIBLE |= dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def safe(text: object, limit: int = LINE_LIMIT) -> str:
    """Return ``text`` without anything that acts on a terminal or hides, at most about ``limit`` characters long."""
    raw = _shorten(str(text), 4 * limit)
    raw = _TERMINAL.sub("", raw.replace("\r\n", "\n"))
    return _shorten(raw.translate(_VISIBLE), limit)


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n… {len(text) - limit:,} characters left out …\n{text[-tail:]}"
