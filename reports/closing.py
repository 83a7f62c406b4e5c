"""The last lines of a run: how many verdicts each implementation has, where to start, where the report lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.verdict import Verdict
from reports import paper, score
from reports.start import Start, starts

Report = dict[str, Any]

MAX_LINES = 10
IMPLS = 4  # with more, the others are counted


def lines(report: Report, files: Sequence[str], room: int) -> list[str]:
    """At most MAX_LINES lines of at most ``room`` columns, but for paths and commands; ``files``: the page first."""
    return [*_counts(report, room), *_start(report, room), *_paths(files)]


def _counts(report: Report, room: int) -> Iterator[str]:
    names = [info["name"] for info in report["impls"]]
    shown = (
        sorted(names, key=lambda name: -_red(report["summary"].get(name, {})))[:IMPLS] if len(names) > IMPLS else names
    )
    margin = min(max((paper.width(paper.line(name)) for name in shown), default=0), room // 3)
    for name in shown:
        counts = report["summary"].get(name, {})
        told = ", ".join(f"{count:,} {verdict}" for verdict, count in score.ordered(counts))
        label = paper.clipped(paper.line(name), margin)
        yield paper.clipped(f"{label}{' ' * (margin - paper.width(label))}  {told or 'nothing ran'}", room)
    if len(names) > len(shown):
        yield f"and {len(names) - len(shown)} more implementations, with less in red"


def _red(counts: dict[str, int]) -> int:
    return sum(count for verdict, count in counts.items() if not Verdict(verdict).is_passing)


def _start(report: Report, room: int) -> Iterator[str]:
    found = starts(report)
    if not found:
        return
    first = max(found, key=_weight)  # of equals the first
    sentence = f"start here: {first.claim['id']} {first.verdict} ({first.impl}, {first.tier}){first.behind}"
    yield from (paper.clipped(part, room) for part in paper.wrapped(paper.line(sentence), room)[:2])
    yield f"            {paper.line(first.rerun)}"


def _weight(found: Start) -> tuple[bool, int, int]:
    return found.impl != score.SUITE, -score.TIERS.index(found.tier), len(found.waiting)


def _paths(files: Sequence[str]) -> Iterator[str]:
    if files:
        first, *others = files
        beside = f" (beside it: {', '.join(others)})" if others else ""
        yield f"report: {first}{beside}"
