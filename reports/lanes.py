"""What the ranks of a broken case did, as inline SVG: operations from issue to completion, and what never completed.

A world's whole timeline goes into a Chrome trace. The page keeps the last operations of each rank:
``{"lanes": [[rank, label, begin_us, waited_us, end_us], ...]}``, with None for a wait that never began and for an end
that never came. Operations of a rank that overlap lie one below the other in its row.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports.axes import Axis, Kind, Tick, axis
from reports.plot import number

Fields = Mapping[str, Any]

KEPT = 24  # operations of a rank: the last ones, where things went wrong
MOST_RANKS = 16
WIDTH, LEFT, RIGHT, TOP, ROW, GAP, BOTTOM = 860.0, 58.0, 12.0, 6.0, 26.0, 5.0, 30.0
LANE = 13.0  # the least height of an operation, so that its label can be read
_LETTER = 6.0  # of a label
_THINNEST = 2.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation; times in microseconds from the first that is shown."""

    rank: int
    label: str
    begin: float
    waited: float | None
    end: float | None

    def __str__(self) -> str:
        if self.end is None:
            return f"{self.label} never completed, since {self.begin / 1000:.3g} ms"
        return f"{self.label} {self.begin / 1000:.3g} to {self.end / 1000:.3g} ms"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An operation in the picture's coordinates; the program waited for it from `waited_x` on."""

    x: float
    y: float
    width: float
    height: float
    waited_x: float | None
    text: str
    told: str
    is_open: bool  # it never completed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The place of one rank."""

    at: float
    height: float
    label: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything that the template draws. `orders`: by rank what it did in turn, the same in words."""

    width: float
    height: float
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    boxes: tuple[Box, ...]
    orders: tuple[tuple[int, str], ...]
    has_open: bool


def kept(ranks: Mapping[int, Mapping[str, Sequence[Fields]]]) -> list[list[Any]]:
    """The rows of ``data["lanes"]`` from a world's timeline (times in nanoseconds)."""
    last = {
        rank: sorted(seen.get("operations", ()), key=lambda op: (op["issued_ns"], op["seq"]))[-KEPT:]
        for rank, seen in sorted(ranks.items())[:MOST_RANKS]
    }
    start = min((operation["issued_ns"] for found in last.values() for operation in found), default=0)

    def since(at: int) -> float | None:
        return round((at - start) / 1000, 1) if at else None

    return [
        [
            rank,
            f"{operation['kind']} #{operation['group_seq']}",
            since(operation["issued_ns"]),
            since(operation.get("waited_ns", 0)),
            since(operation.get("done_ns", 0)),
        ]
        for rank, found in last.items()
        for operation in found
    ]


def picture(data: Mapping[str, Any]) -> Picture | None:
    """The picture of a result's data, or None where it has no operations."""
    operations = list(_operations(data.get("lanes") or ()))
    if not operations:
        return None
    ranks = sorted({operation.rank for operation in operations})
    known = [
        at for operation in operations for at in (operation.begin, operation.waited, operation.end) if at is not None
    ]
    is_open = any(operation.end is None for operation in operations)
    x = axis(Kind.LINEAR, 0.0, max(max(known), 1.0) / 1000 * (1.12 if is_open else 1.0), LEFT, WIDTH - RIGHT)
    rows, boxes, top = [], [], TOP
    for rank in ranks:
        own = [operation for operation in operations if operation.rank == rank]
        lanes = _lanes(own)
        lane_height = max(ROW / (max(lanes) + 1), LANE)
        height = lane_height * (max(lanes) + 1)
        rows.append(Row(at=top, height=height, label=f"rank {rank}"))
        boxes += [_box(o, top + lane * lane_height, lane_height, x) for o, lane in zip(own, lanes, strict=True)]
        top += height + GAP
    return Picture(
        width=WIDTH,
        height=top + BOTTOM,
        rows=tuple(rows),
        ticks=x.ticks(),
        boxes=tuple(boxes),
        orders=tuple((rank, "; ".join(str(o) for o in operations if o.rank == rank)) for rank in ranks),
        has_open=is_open,
    )


def _operations(rows: Any) -> Iterable[Operation]:
    for row in rows:
        if isinstance(row, (list, tuple)) and len(row) == 5 and isinstance(row[0], int):
            begin, waited, end = map(number, row[2:])
            if begin is not None and begin >= 0 and (end is None or end >= begin):
                yield Operation(rank=row[0], label=str(row[1]), begin=begin, waited=waited, end=end)


def _lanes(operations: Sequence[Operation]) -> list[int]:
    """For each operation the first lane of its rank that is free when it begins."""
    free: list[float] = []
    lanes = []
    for operation in operations:
        lane = next((at for at, until in enumerate(free) if until <= operation.begin), len(free))
        free[lane : lane + 1] = [math.inf if operation.end is None else operation.end]
        lanes.append(lane)
    return lanes


def _box(operation: Operation, y: float, height: float, x: Axis) -> Box:
    begin = x.place(operation.begin / 1000)
    end = WIDTH - RIGHT if operation.end is None else max(x.place(operation.end / 1000), begin + _THINNEST)
    waited = None if operation.waited is None else max(x.place(operation.waited / 1000), begin)
    return Box(
        x=begin,
        y=round(y, 2),
        width=round(end - begin, 2),
        height=round(height, 2),
        waited_x=waited if waited is not None and waited < end else None,
        text=operation.label if len(operation.label) * _LETTER < end - begin else "",
        told=f"rank {operation.rank}: {operation}",
        is_open=operation.end is None,
    )
