"""Measured points and the formulas' lines as inline SVG, from results whose data has a series.

A result's data is ``{"plot": NAME, "points": [{"x": 4, "observed": 1, "formula": 2}]}``, with any of: ``label`` (each
label has a picture of its own: other tensors, other world sizes), ``line`` of the data or of a point (what is drawn as
one line; its plot's name otherwise), and ``curve``, places ``[[x, y], ...]`` of the formula between the points. A point
without a formula is joined to the next one of its line. Every implementation has marks of its own.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports.axes import Axis, Kind, Tick, axis

Report = dict[str, Any]
Point = tuple[float, float]

WIDTH, HEIGHT = 720.0, 340.0
LEFT, RIGHT, TOP, BOTTOM = 72.0, 20.0, 18.0, 48.0
MARKERS = 6  # shapes, and colours, that are told apart
_STEPS = 24  # curve pieces between two formula points
_FEW_X = 9  # values of x that are written one by one


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a kind of picture is drawn. Formulas that are no smooth function of x have ``straight`` lines."""

    x: Kind = Kind.LINEAR
    y: Kind = Kind.LINEAR
    straight: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One formula as an SVG path."""

    line: str
    colour: int
    path: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One implementation's points of one line, in the picture's coordinates; `path` joins them without a formula."""

    impl: str
    line: str
    marker: int
    colour: int
    path: str
    dots: tuple[tuple[float, float, str], ...]  # x, y, what a reader is told


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything that the template draws. `table`: line, implementation, x, observed, formula, the same in words."""

    label: str
    curves: tuple[Curve, ...]
    series: tuple[Series, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    unit: str
    claims: tuple[str, ...]
    table: tuple[tuple[str, str, str, str, str], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    claim: str
    impl: str
    line: str
    x: float
    observed: float
    formula: float | None


def pictures(report: Report, names: Sequence[str], shape: Shape = Shape()) -> list[Picture]:
    """One picture for each label under the plots ``names``, in the order of first appearance."""
    rows: dict[str, list[_Row]] = {}
    curves: dict[str, dict[str, list[Point]]] = {}
    for result in report["results"]:
        data = result["data"]
        if data.get("plot") not in names:
            continue
        label = str(data.get("label", ""))
        found = list(_rows(result, data))
        if found:
            rows.setdefault(label, []).extend(found)
            if places := list(_places(data.get("curve") or ())):
                curves.setdefault(label, {})[found[0].line] = places
    return [_picture(label, found, curves.get(label, {}), shape) for label, found in rows.items()]


def _rows(result: Report, data: Mapping[str, Any]) -> Iterable[_Row]:
    for point in data.get("points") or ():
        if not isinstance(point, Mapping):
            continue
        x, observed = number(point.get("x")), number(point.get("observed"))
        if x is not None and observed is not None:
            yield _Row(
                claim=result["claim"],
                impl=result["impl"],
                line=str(point.get("line") or data.get("line") or data["plot"]),
                x=x,
                observed=observed,
                formula=number(point.get("formula")),
            )


def _places(found: Any) -> Iterable[Point]:
    for place in found:
        if isinstance(place, (list, tuple)) and len(place) == 2:
            x, y = map(number, place)
            if x is not None and y is not None:
                yield x, y


def number(value: Any) -> float | None:
    """The value of a result's data if it is a finite number."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _picture(label: str, rows: list[_Row], curves: Mapping[str, list[Point]], shape: Shape) -> Picture:
    lines = list(dict.fromkeys(row.line for row in rows))
    impls = list(dict.fromkeys(row.impl for row in rows))
    formulas = {line: curves.get(line) or _formula(rows, line, shape.straight) for line in lines}
    x, y = _axes(rows, formulas, shape)
    xs = sorted({row.x for row in rows})

    def path(points: Iterable[Point]) -> str:
        return "".join(f"{'L' if number else 'M'}{x.place(a):g},{y.place(b):g}" for number, (a, b) in enumerate(points))

    def series(line: str, impl: str) -> Series:
        own = sorted({row.x: row for row in rows if (row.line, row.impl) == (line, impl)}.values(), key=lambda r: r.x)
        return Series(
            impl=impl,
            line=line,
            marker=impls.index(impl) % MARKERS,
            colour=(lines.index(line) if len(lines) > 1 else impls.index(impl)) % MARKERS,
            path="" if formulas[line] else path((row.x, row.observed) for row in own),
            dots=tuple((x.place(row.x), y.place(row.observed), _told(row, shape)) for row in own),
        )

    pairs = [pair for pair in itertools.product(lines, impls) if any((row.line, row.impl) == pair for row in rows)]
    return Picture(
        label=label,
        curves=tuple(
            Curve(line=line, colour=lines.index(line) % MARKERS if len(lines) > 1 else -1, path=path(places))
            for line, places in formulas.items()
            if places
        ),
        series=tuple(series(*pair) for pair in pairs),
        x_ticks=x.marks(xs) if shape.x is Kind.LINEAR and len(xs) <= _FEW_X else x.ticks(),
        y_ticks=y.ticks(),
        unit=y.unit,
        claims=tuple(dict.fromkeys(row.claim for row in rows)),
        table=tuple(
            (line, impl, f"{row.x:,.4g}", _figure(row.observed, shape.y), _figure(row.formula, shape.y))
            for line, impl in pairs
            for row in sorted({r.x: r for r in rows if (r.line, r.impl) == (line, impl)}.values(), key=lambda r: r.x)
        ),
    )


def _axes(rows: Sequence[_Row], formulas: Mapping[str, Sequence[Point]], shape: Shape) -> tuple[Axis, Axis]:
    places = [place for curve in formulas.values() for place in curve] + [(row.x, row.observed) for row in rows]
    xs, ys = [place[0] for place in places], [place[1] for place in places]
    aside = 0.0 if shape.x is Kind.LOG else max(0.5, (max(xs) - min(xs)) * 0.03)
    is_log = shape.y is Kind.LOG
    bottom = min([y for y in ys if y > 0] or [1.0]) / 1.3 if is_log else min(0.0, *ys)
    top = max(ys) * 1.3 if is_log else max([*ys, 1e-9]) * 1.08
    x = axis(shape.x, min(xs) - aside, max(xs) + aside, LEFT, WIDTH - RIGHT)
    return x, axis(shape.y, bottom, top, HEIGHT - BOTTOM, TOP)


def _formula(rows: Sequence[_Row], line: str, straight: bool) -> list[Point]:
    known = sorted({row.x: row.formula for row in rows if row.line == line and row.formula is not None}.items())
    return list(known) if straight else smooth(known)


def _told(row: _Row, shape: Shape) -> str:
    formula = "" if row.formula is None else f"; formula {_figure(row.formula, shape.y)}"
    return f"{row.impl}, {row.x:g}: {_figure(row.observed, shape.y)}{formula}"


def _figure(value: float | None, kind: Kind) -> str:
    if value is None:
        return ""
    if kind is Kind.SHARE:
        return f"{value:.2%}"
    return f"{value:,.0f}" if kind is Kind.BYTES else f"{value:,.4g}"


def smooth(points: Sequence[Point]) -> list[Point]:
    """Points of a monotone cubic through ``points`` (Fritsch and Carlson 1980): no bump that the formula has not."""
    if len(points) < 3:
        return list(points)
    xs, ys = zip(*points, strict=True)
    slopes = [(ys[i + 1] - ys[i]) / (xs[i + 1] - xs[i]) for i in range(len(points) - 1)]
    inner = [0.0 if a * b <= 0 else 2 * a * b / (a + b) for a, b in itertools.pairwise(slopes)]
    first = max(min(1.5 * slopes[0] - 0.5 * inner[0], 3 * slopes[0]), 0.0) if slopes[0] > 0 else slopes[0]
    tangents = [first, *inner, slopes[-1]]
    curve: list[Point] = []
    for i, slope in enumerate(slopes):
        width = xs[i + 1] - xs[i]
        for piece in range(_STEPS):
            t = piece / _STEPS
            bend = t * (1 - t) * width * ((1 - t) * (tangents[i] - slope) - t * (tangents[i + 1] - slope))
            curve.append((xs[i] + t * width, ys[i] + t * (ys[i + 1] - ys[i]) + bend))
    return [*curve, points[-1]]
