"""What a rank holds as bars: measured, with the formula's figure as a line across, from results whose data has bars.

A result's data is ``{"bars": [{"group": "ZeRO-1", "x": "4", "label": TEXT, "observed": value, "formula": value}]}``: a
picture for each label (a convention of counting), in it a place for each group and x with a bar of each implementation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from reports.axes import Axis, Kind, Tick, axis
from reports.plot import BOTTOM, HEIGHT, LEFT, MARKERS, RIGHT, TOP, WIDTH, number

Report = dict[str, Any]

_GAP = 0.24  # of a place, between its bars and the next ones
_WIDEST = 34.0
_FILLED = 0.94  # of a bar's width


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One measured figure."""

    colour: int
    x: float
    y: float
    width: float
    height: float
    told: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The formula's figure over the bars of one place."""

    x1: float
    x2: float
    y: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything that the template draws. `table`: group, x, implementation, observed, formula, the same in words."""

    label: str
    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    impls: tuple[tuple[str, int], ...]  # with their colours
    places: tuple[Tick, ...]
    groups: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    claims: tuple[str, ...]
    table: tuple[tuple[str, str, str, str, str], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    claim: str
    impl: str
    group: str
    x: str
    label: str
    observed: float
    formula: float


def pictures(report: Report) -> list[Picture]:
    """One picture for each label."""
    found: dict[str, list[_Row]] = {}
    for row in _rows(report):
        found.setdefault(row.label, []).append(row)
    return [_picture(label, rows) for label, rows in found.items()]


def _rows(report: Report) -> Iterable[_Row]:
    for result in report["results"]:
        for bar in result["data"].get("bars") or ():
            if not isinstance(bar, Mapping):
                continue
            observed, formula = number(bar.get("observed")), number(bar.get("formula"))
            if observed is not None and formula is not None and min(observed, formula) >= 0:
                texts = {key: str(bar.get(key, "")) for key in ("group", "x", "label")}
                yield _Row(claim=result["claim"], impl=result["impl"], observed=observed, formula=formula, **texts)


def _picture(label: str, rows: list[_Row]) -> Picture:
    impls = list(dict.fromkeys(row.impl for row in rows))
    groups = sorted({row.group for row in rows})
    places = sorted(
        {(groups.index(row.group), row.x) for row in rows}, key=lambda place: (place[0], len(place[1]), place)
    )
    by_place = {(groups.index(row.group), row.x, row.impl): row for row in rows}
    y = axis(Kind.LINEAR, 0.0, max(max(row.observed, row.formula) for row in rows) * 1.08 or 1.0, HEIGHT - BOTTOM, TOP)
    # Groups stand apart by half a place.
    step = (WIDTH - LEFT - RIGHT) / (len(places) + (len(groups) - 1) / 2)
    left = {place: LEFT + (number + place[0] / 2) * step for number, place in enumerate(places)}
    width = min(step * (1 - _GAP) / len(impls), _WIDEST)
    bars, lines = [], []
    for place, at in left.items():
        begin = at + (step - width * len(impls)) / 2
        for nth, impl in enumerate(impls):
            if (row := by_place.get((*place, impl))) is not None:
                bars.append(_bar(row, nth, begin + nth * width, width, y))
                lines.append(_line(begin + nth * width, width, y.place(row.formula)))
    return Picture(
        label=label,
        bars=tuple(bars),
        lines=tuple(lines),
        impls=tuple((impl, number % MARKERS) for number, impl in enumerate(impls)),
        places=tuple(Tick(at=round(at + step / 2, 2), label=place[1]) for place, at in left.items()),
        groups=tuple(
            _group(name, [at for place, at in left.items() if place[0] == number], step)
            for number, name in enumerate(groups)
        ),
        y_ticks=y.ticks(),
        claims=tuple(dict.fromkeys(row.claim for row in rows)),
        table=tuple(
            (groups[place[0]], place[1], impl, f"{row.observed:.4g}", f"{row.formula:.4g}")
            for place in places
            for impl in impls
            if (row := by_place.get((*place, impl))) is not None
        ),
    )


def _bar(row: _Row, nth: int, x: float, width: float, y: Axis) -> Bar:
    top = y.place(row.observed)
    return Bar(
        colour=nth % MARKERS,
        x=round(x, 2),
        y=top,
        width=round(width * _FILLED, 2),
        height=round(HEIGHT - BOTTOM - top, 2),
        told=f"{row.impl}, {row.group}, {row.x}: {row.observed:.4g}; formula {row.formula:.4g}",
    )


def _line(x: float, width: float, y: float) -> Line:
    beyond = (1 - _FILLED) * width
    return Line(x1=round(x - beyond, 2), x2=round(x + width * _FILLED + beyond, 2), y=y)


def _group(name: str, lefts: list[float], step: float) -> Tick:
    return Tick(at=round((min(lefts) + max(lefts) + step) / 2, 2), label=name)
