"""What pipeline ranks do over time as cells of a chart: simulated from a schedule, or measured on ranks. No drawing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from impls.reference.pipeline.actions import Action, Kind, Schedule
from impls.reference.pipeline.simulate import Timeline
from lessons.pipeline_work import Moment

JOINED = 0.3  # of a unit: I and W with less between them are one B, where the schedule has one


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One action of one rank. Both parts of an overlapped pair are cells of the same times."""

    rank: int
    kind: Kind
    stage: int
    microbatch: int
    begin: float
    end: float

    @property
    def label(self) -> str:
        """F0.3: stage 0, microbatch 3."""
        return f"{self.kind}{self.stage}.{self.microbatch}"


def simulated(timeline: Timeline) -> list[Cell]:
    """All actions of a simulated schedule."""
    return [
        Cell(
            rank=rank,
            kind=part.kind,
            stage=part.stage,
            microbatch=part.microbatch,
            begin=float(begin),
            end=float(end),
        )
        for rank in range(timeline.schedule.num_ranks)
        for action, begin, end in timeline.spans(rank)
        for part in action.parts
    ]


def measured(seen: Sequence[Sequence[Moment]], schedule: Schedule, unit_s: float, joined: float = JOINED) -> list[Cell]:
    """What each rank was seen to do, in units from the first action of all.

    The halves of a backward with less than `joined` units between them are one cell, where `schedule` has it whole.
    """
    start = min((began for moments in seen for *_, began, _ in moments), default=0)
    whole = {str(part) for row in schedule for action in row for part in action.parts if part.kind is Kind.BACKWARD}
    cells: list[Cell] = []
    for rank, moments in enumerate(seen):
        row: list[Cell] = []
        for kind, stage, microbatch, began, ended in sorted(moments, key=lambda moment: moment[3]):
            begin, end = ((at - start) / 1e9 / unit_s for at in (began, ended))
            both = str(Action(Kind.BACKWARD, stage, microbatch))
            if kind == "W" and both in whole and row and _is_first_half(row[-1], stage, microbatch, begin, joined):
                begin, kind = row.pop().begin, "B"
            row.append(Cell(rank=rank, kind=Kind(kind), stage=stage, microbatch=microbatch, begin=begin, end=end))
        cells += row
    return cells


def idle_share(cells: Sequence[Cell], num_ranks: int) -> float:
    """The share of the time of all ranks, from the first action to the end of the last, in which they do nothing."""
    busy = sum(cell.end - cell.begin for cell in cells)
    return 1 - busy / (max(cell.end for cell in cells) * num_ranks)


def _is_first_half(cell: Cell, stage: int, microbatch: int, begin: float, joined: float) -> bool:
    same = (cell.kind, cell.stage, cell.microbatch) == (Kind.INPUT, stage, microbatch)
    return same and begin - cell.end < joined
