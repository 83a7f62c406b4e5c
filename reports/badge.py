"""badge.svg: one line about a run, to show beside a README. Nothing an implementation says is in it."""

from __future__ import annotations

from typing import Any

from reports import score

Report = dict[str, Any]

LABEL = "lockstep"
HEIGHT = 20
_LETTER = 6.6  # pixels of an average letter at 11 px; textLength makes the text fit exactly whatever the font
_PADDING = 7.0
# White on each has a contrast of at least 4.5.
_GOOD, _BAD, _OURS, _NOTHING = "#1a7f4e", "#b3261b", "#835600", "#646b76"


def render(report: Report) -> str:
    """Return badge.svg for a report.json that ``reading.validate`` accepts."""
    text, colour = _said(report)
    left, right = _room(LABEL), _room(text)
    whole = left + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole:g}" height="{HEIGHT}" role="img" '
        f'aria-label="{LABEL}: {text}"><title>{LABEL}: {text}</title>'
        f'<clipPath id="r"><rect width="{whole:g}" height="{HEIGHT}" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left:g}" height="{HEIGHT}" fill="#33373d"/>'
        f'<rect x="{left:g}" width="{right:g}" height="{HEIGHT}" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">'
        f"{_letters(LABEL, 0, left)}{_letters(text, left, right)}</g></svg>\n"
    )


def _said(report: Report) -> tuple[str, str]:
    """The words and their colour: of the one implementation, of all of them, or of the suite by itself."""
    found = score.scores(report) or [score.ImplScore(impl=score.SUITE, overall=score.suite_score(report), tiers={})]
    red = {result["verdict"] for result in report["results"]} & score.ALARMING
    holds, decided = (
        sum(figures) for figures in zip(*((s.overall.holds, s.overall.decided) for s in found), strict=True)
    )
    if not decided and not red:
        return "nothing decided", _NOTHING
    colour = _BAD if red & score.BROKEN else _OURS if red else _GOOD
    several = f" ({len(found)} implementations)" if len(found) > 1 else ""
    return f"{holds} of {decided} hold{several}", colour


def _room(text: str) -> float:
    return round(len(text) * _LETTER + 2 * _PADDING, 1)


def _letters(text: str, start: float, room: float) -> str:
    return f'<text x="{start + _PADDING:g}" y="14" textLength="{room - 2 * _PADDING:g}">{text}</text>'
