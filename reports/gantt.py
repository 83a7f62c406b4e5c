"""What pipeline ranks do over time as inline SVG, from results whose data has charts.

A result's data is ``{"gantt": [{"label": TEXT, "cells": [[rank, kind, stage, microbatch, begin, end], ...]}]}``: one
chart for each entry, times in any unit from 0. The kind is F (forward), B (backward) or one of its halves, I (gradient
of the input) and W (gradients of the weights). Cells of a rank with the same times overlap: they share the height of
its row. Kinds are told apart by letter and by hatching as well as by colour.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports.axes import nice_step
from reports.text import safe

KINDS = ("F", "B", "I", "W")
MOST_CELLS = 1200  # of one picture; what comes later is left out, and the picture says so
WIDTH, LEFT, RIGHT, TOP, LANE, GAP, AXIS = 860.0, 58.0, 12.0, 6.0, 26.0, 5.0, 30.0
_LABEL_WIDTH, _NARROW = 6.0, 7.0  # of one character; of a cell whose letter alone has room
_TICKS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """One action of one rank."""

    rank: int
    kind: str
    stage: int
    microbatch: int
    begin: float
    end: float

    def __str__(self) -> str:
        return f"{self.kind}{self.stage}.{self.microbatch}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A cell in the picture's coordinates; `text` is what there is room for, `told` what a reader is told."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    text: str
    told: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A row of a rank, or a tick of the axis: where it is, and what is written there."""

    at: float
    label: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything that the template draws. `orders`: by rank what it does in turn, the same in words."""

    label: str
    width: float
    height: float
    lanes: tuple[Mark, ...]
    ticks: tuple[Mark, ...]
    boxes: tuple[Box, ...]
    kinds: tuple[str, ...]
    idle: str  # the share of all ranks' time, in percent
    left_out: int
    orders: tuple[tuple[int, str], ...]


def charts(data: Mapping[str, Any]) -> dict[str, list[Cell]]:
    """The charts of a result's data by label, without what is no cell."""
    found = data.get("gantt") or ()
    return {
        str(chart.get("label", "")): [Cell(*row) for row in chart.get("cells") or () if _is_cell(row)]
        for chart in found
        if isinstance(chart, Mapping)
    }


def pictures(data: Mapping[str, Any]) -> list[Picture]:
    """One picture for each chart that has cells."""
    return [_picture(label, cells) for label, cells in charts(data).items() if cells]


def chrome_trace(found: Mapping[str, Sequence[Cell]], title: str = "") -> dict[str, Any]:
    """The charts for Perfetto: a process for each rank, a track for each chart, a unit of time as a millisecond."""
    events: list[dict[str, Any]] = []
    for track, (label, cells) in enumerate(found.items()):
        for rank in sorted({cell.rank for cell in cells}):
            about = {"ph": "M", "pid": rank, "tid": track}
            events.append({**about, "name": "process_name", "args": {"name": f"rank {rank}"}})
            events.append({**about, "name": "thread_name", "args": {"name": safe(label)}})
        for cell in cells:
            where = {"pid": cell.rank, "tid": track, "ts": cell.begin * 1000, "dur": (cell.end - cell.begin) * 1000}
            args = {"stage": cell.stage, "microbatch": cell.microbatch}
            events.append({"ph": "X", "name": str(cell), "cat": cell.kind, **where, "args": args})
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"title": safe(title), "suite": "Lockstep"}}


def _is_cell(row: Any) -> bool:
    if not isinstance(row, (list, tuple)) or len(row) != 6 or row[1] not in KINDS:
        return False
    rank, _, stage, microbatch, *times = row
    whole = all(isinstance(number, int) and number >= 0 for number in (rank, stage, microbatch))
    return (
        whole and all(isinstance(at, (int, float)) and math.isfinite(at) for at in times) and 0 <= times[0] <= times[1]
    )


def _picture(label: str, cells: Sequence[Cell]) -> Picture:
    ranks = sorted({cell.rank for cell in cells})
    makespan = max(cell.end for cell in cells) or 1.0
    shown = sorted(cells, key=lambda cell: cell.begin)[:MOST_CELLS]
    end = makespan if len(shown) == len(cells) else max(cell.end for cell in shown) or 1.0
    bottom = TOP + len(ranks) * (LANE + GAP)
    per_time = (WIDTH - LEFT - RIGHT) / end
    step = nice_step(end / _TICKS)
    return Picture(
        label=label,
        width=WIDTH,
        height=bottom + AXIS,
        lanes=tuple(Mark(at=TOP + row * (LANE + GAP), label=f"rank {rank}") for row, rank in enumerate(ranks)),
        ticks=tuple(
            Mark(at=round(LEFT + number * step * per_time, 2), label=f"{number * step:g}")
            for number in range(int(end / step) + 1)
        ),
        boxes=tuple(_boxes(shown, ranks, per_time)),
        kinds=tuple(kind for kind in KINDS if any(cell.kind == kind for cell in shown)),
        idle=f"{1 - _busy(cells) / (makespan * len(ranks)):.1%}",
        left_out=len(cells) - len(shown),
        orders=tuple((rank, " ".join(str(cell) for cell in shown if cell.rank == rank)) for rank in ranks),
    )


def _busy(cells: Iterable[Cell]) -> float:
    """The time in which ranks work; of cells that overlap only once."""
    return sum(end - begin for _, begin, end in {(cell.rank, cell.begin, cell.end) for cell in cells})


def _boxes(cells: Sequence[Cell], ranks: Sequence[int], per_time: float) -> Iterable[Box]:
    together: dict[tuple[int, float, float], list[Cell]] = {}
    for cell in cells:
        together.setdefault((cell.rank, cell.begin, cell.end), []).append(cell)
    several = {rank: len({cell.stage for cell in cells if cell.rank == rank}) > 1 for rank in ranks}
    for (rank, begin, end), parts in together.items():
        height = LANE / len(parts)
        for place, cell in enumerate(parts):
            width = (end - begin) * per_time
            text = f"{cell.kind}{f'{cell.stage}.' if several[rank] else ''}{cell.microbatch}"
            yield Box(
                kind=cell.kind,
                x=round(LEFT + begin * per_time, 2),
                y=round(TOP + ranks.index(rank) * (LANE + GAP) + place * height, 2),
                width=round(max(width, 0.5), 2),
                height=round(height, 2),
                text=_fitting((text, f"{cell.microbatch}", cell.kind), width),
                told=f"rank {rank}: {_WORDS[cell.kind]} of stage {cell.stage}, microbatch {cell.microbatch}, "
                f"{begin:g} to {end:g}",
            )


_WORDS = {"F": "forward", "B": "backward", "I": "gradient of the input", "W": "gradients of the weights"}


def _fitting(texts: Sequence[str], width: float) -> str:
    """The first text that has room."""
    return next((text for text in texts if len(text) * _LABEL_WIDTH <= width - 2 and width >= _NARROW), "")
