"""Persian text with formulas and code in it: digits, and runs that keep their own direction.

Without help the bidirectional algorithm writes ``2T(N-1)/N`` inside a Persian sentence with its parts swapped.
"""

from __future__ import annotations

import re

from markupsafe import Markup

_DIGITS = str.maketrans("0123456789,.", "۰۱۲۳۴۵۶۷۸۹٬٫")
# ASCII (and the signs of formulas) from a letter, digit or bracket on, over single spaces.
_LATIN = re.compile(r"[A-Za-z0-9_(\[][\x21-\x7e×−·≤≥≠⌈⌉₂]*(?: [\x21-\x7e×−·≤≥≠⌈⌉₂]+)*")
_LONG = 32
_CLOSING = {"(": ")", "[": "]"}


def digits(number: str) -> str:
    """Write an English number with Persian digits and separators."""
    return number.translate(_DIGITS)


def isolated(text: str) -> Markup:
    """Escape ``text`` and give each Latin run in it a direction of its own."""
    pieces, at = [Markup("")], 0
    for match in _LATIN.finditer(text):
        start, end = _trimmed(text, match.start(), match.end())
        if start >= end:
            continue
        pieces.append(Markup.escape(text[at:start]))
        wraps = Markup(' class="long"') if end - start > _LONG else ""  # a formula is not broken at the end of a line
        pieces.append(Markup('<bdi dir="ltr"{}>{}</bdi>').format(wraps, text[start:end]))
        at = end
    pieces.append(Markup.escape(text[at:]))
    return Markup("").join(pieces)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave the sentence's own punctuation and brackets that open or close outside the run to the sentence."""
    while start < end:
        run = text[start:end]
        if run[-1] in ".,:;!?- " or (run[-1] in ")]" and not _balanced(run)) or run[-1] in "([":
            end -= 1
        elif run[0] in "([" and not _balanced(run):
            start += 1
        else:
            break
    return start, end


def _balanced(run: str) -> bool:
    return all(run.count(opening) == run.count(closing) for opening, closing in _CLOSING.items())
