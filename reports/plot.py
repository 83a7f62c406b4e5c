"""Measured points and the formula's curve as inline SVG, from results whose data has a series.

A result's data is ``{"plot": NAME, "points": [{"x": N, "observed": value, "formula": value}], "label": TEXT}``; the
points of all results with the same plot and label are drawn in one picture, one series for each implementation. The
optional label tells different tensors apart.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

Report = dict[str, Any]
Point = tuple[float, float]

WIDTH, HEIGHT = 720.0, 360.0
LEFT, RIGHT, TOP, BOTTOM = 72.0, 20.0, 18.0, 48.0
_STEPS = 24  # curve pieces between two formula points


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One mark of an axis: where it is and what is written there."""

    at: float
    label: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One implementation's measured points, in the picture's coordinates."""

    impl: str
    marker: int  # which shape and colour
    dots: tuple[tuple[float, float, str], ...]  # x, y, what a reader is told


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything that the template draws, in the picture's coordinates."""

    name: str
    label: str
    curve: str  # an SVG path
    series: tuple[Series, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    unit: str
    claims: tuple[str, ...]
    table: tuple[tuple[str, int, str, str], ...]  # implementation, x, observed, formula: the same in words


def pictures(report: Report, name: str) -> list[Picture]:
    """Return one picture for each label under the plot ``name``, in the order of first appearance."""
    found: dict[str, list[tuple[str, str, float, float, float]]] = {}
    for result in report["results"]:
        data = result["data"]
        if data.get("plot") != name:
            continue
        for point in data.get("points") or ():
            values = [point.get(key) for key in ("x", "observed", "formula")]
            if all(isinstance(value, (int, float)) for value in values):
                x, observed, formula = map(float, values)
                row = (result["claim"], result["impl"], x, observed, formula)
                found.setdefault(str(data.get("label", "")), []).append(row)
    return [_picture(name, label, rows) for label, rows in found.items()]


def _picture(name: str, label: str, rows: list[tuple[str, str, float, float, float]]) -> Picture:
    formula = sorted({x: value for _, _, x, _, value in rows}.items())
    measured: dict[str, dict[float, float]] = {}
    for _, impl, x, observed, _ in rows:
        measured.setdefault(impl, {})[x] = observed
    xs = [x for x, _ in formula]
    top = max([value for _, value in formula] + [row[3] for row in rows] + [1.0]) * 1.08
    low, high = min(xs) - 0.5, max(xs) + 0.5
    step = _nice_step(top / 6)
    scale, unit = _byte_unit(top)

    def place(x: float, value: float) -> Point:
        across = (x - low) / (high - low) * (WIDTH - LEFT - RIGHT)
        return round(LEFT + across, 2), round(HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM), 2)

    def told(impl: str, x: float, value: float) -> str:
        return f"{impl}, N={x:g}: {value:,.0f}; formula {dict(formula)[x]:,.0f}"

    curve = " ".join(
        f"{'M' if index == 0 else 'L'}{x:g},{y:g}"
        for index, (x, y) in enumerate(place(*point) for point in smooth(formula))
    )
    return Picture(
        name=name,
        label=label,
        curve=curve,
        series=tuple(
            Series(
                impl=impl,
                marker=index % 6,
                dots=tuple((*place(x, value), told(impl, x, value)) for x, value in sorted(points.items())),
            )
            for index, (impl, points) in enumerate(measured.items())
        ),
        x_ticks=tuple(Tick(at=place(x, 0)[0], label=f"{x:g}") for x in xs),
        y_ticks=tuple(
            Tick(at=place(low, index * step)[1], label=f"{index * step / scale:g}")
            for index in range(int(top / step) + 1)
        ),
        unit=unit,
        claims=tuple(dict.fromkeys(claim for claim, *_ in rows)),
        table=tuple(
            (impl, int(x), f"{value:,.0f}", f"{dict(formula)[x]:,.0f}")
            for impl, points in measured.items()
            for x, value in sorted(points.items())
        ),
    )


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


def _nice_step(rough: float) -> float:
    """The power of two above ``rough``: bytes read best so."""
    return float(2 ** math.ceil(math.log2(rough))) if rough > 0 else 1.0


def _byte_unit(top: float) -> tuple[float, str]:
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if top >= scale:
            return float(scale), unit
    return 1.0, "B"
