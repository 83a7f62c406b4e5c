"""What the ranks of a broken case did, as inline SVG: operations from issue to completion, and what never completed.

A world's whole timeline goes into a Chrome trace. The page keeps the last operations of each rank:
``{"lanes": [[rank, label, begin_us, waited_us, end_us], ...]}``, with None for a wait that never began and for an end
that never came. Operations of a rank that overlap share the height of its row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports.axes import Kind, Tick, axis
from reports.plot import number

Fields = Mapping[str, Any]

KEPT = 24  # operations of a rank: the last ones, where things went wrong
MOST_RANKS = 16
WIDTH, LEFT, RIGHT, TOP, ROW, GAP, BOTTOM = 860.0, 58.0, 12.0, 6.0, 26.0, 5.0, 30.0
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
class Picture:
    """Everything that the template draws. `orders`: by rank what it did in turn, the same in words."""

    width: float
    height: float
    rows: tuple[Tick, ...]
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
    bottom = TOP + len(ranks) * (ROW + GAP)
    return Picture(
        width=WIDTH,
        height=bottom + BOTTOM,
        rows=tuple(Tick(at=TOP + row * (ROW + GAP), label=f"rank {rank}") for row, rank in enumerate(ranks)),
        ticks=x.ticks(),
        boxes=tuple(
            box
            for row, rank in enumerate(ranks)
            for box in _boxes([o for o in operations if o.rank == rank], TOP + row * (ROW + GAP), x.place)
        ),
        orders=tuple((rank, "; ".join(str(o) for o in operations if o.rank == rank)) for rank in ranks),
        has_open=is_open,
    )


def _operations(rows: Any) -> Iterable[Operation]:
    for row in rows:
        if isinstance(row, (list, tuple)) and len(row) == 5 and isinstance(row[0], int):
            begin, waited, end = map(number, row[2:])
            if begin is not None and begin >= 0 and (end is None or end >= begin):
                yield Operation(rank=row[0], label=str(row[1]), begin=begin, waited=waited, end=end)


def _boxes(operations: Sequence[Operation], top: float, place: Any) -> Iterable[Box]:
    free: list[float] = []  # when each lane of the row is free again
    lanes = []
    for operation in operations:
        lane = next((at for at, until in enumerate(free) if until <= operation.begin), len(free))
        free[lane : lane + 1] = [float("inf") if operation.end is None else operation.end]
        lanes.append(lane)
    height = ROW / max(len(free), 1)
    for operation, lane in zip(operations, lanes, strict=True):
        begin = place(operation.begin / 1000)
        end = WIDTH - RIGHT if operation.end is None else max(place(operation.end / 1000), begin + _THINNEST)
        waited = None if operation.waited is None else max(place(operation.waited / 1000), begin)
        yield Box(
            x=begin,
            y=round(top + lane * height, 2),
            width=round(end - begin, 2),
            height=round(height, 2),
            waited_x=waited if waited is not None and waited < end else None,
            text=operation.label if len(operation.label) * _LETTER < end - begin and height > 10 else "",
            told=f"rank {operation.rank}: {operation}",
            is_open=operation.end is None,
        )
