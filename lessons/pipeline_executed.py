"""Lesson 79 with ``--execute``: the schedule on gloo ranks, drawn from when each rank computed what."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence

from fixtures.world.pool import WorldPool
from fixtures.world.server import Server
from impls.reference.pipeline.actions import Action, Kind, Schedule
from impls.reference.pipeline.gantt import label
from impls.reference.pipeline.simulate import Timeline
from lessons.pipeline_cells import Cell, idle_share, measured
from lessons.pipeline_text import framed, percent
from lessons.pipeline_work import Moment, record

UNIT_S = 0.02  # of a cost of 1, if the whole step then takes less than
MOST_S = 20.0
MOST_RANKS = 8
DEADLINE_S = 120.0


def executed(options: argparse.Namespace, timeline: Timeline) -> list[Cell]:
    """What each rank did, in units of cost from the first action of all; RanksFailed where one did not come back."""
    schedule = timeline.schedule
    unit_s = min(UNIT_S, MOST_S / max(1.0, float(timeline.makespan)))
    share = schedule.num_ranks / schedule.num_stages
    figures = {"F": options.forward, "I": options.input_gradient, "W": options.weight_gradient}
    durations_s = {kind: float(cost) * share * unit_s for kind, cost in figures.items()}
    stages = [schedule.stages_of(rank) for rank in range(schedule.num_ranks)]
    with Server.at_hand() as server, WorldPool(server) as pool:
        world = pool.world(schedule.num_ranks, impl=options.impl)  # traced: a deadlock is told at once
        arguments = (schedule.name, stages, schedule.num_microbatches, durations_s)
        seen: Sequence[Sequence[Moment]] = world.run(record, *arguments, deadline_s=DEADLINE_S).values
    return measured(seen, schedule, unit_s)


def told(cells: Sequence[Cell], timeline: Timeline, width: int | None) -> Iterator[str]:
    """The executed chart as text, its idle time, and whether the order was that of the schedule."""
    schedule = timeline.schedule
    end = max(cell.end for cell in cells)
    yield f"{schedule.name} on {schedule.num_ranks} gloo ranks, as executed"
    yield ""
    longest = max(len(_label(cell, schedule)) for cell in cells)
    per_time = (longest + 1) / min(cell.end - cell.begin for cell in cells if cell.end > cell.begin)
    ranks = range(schedule.num_ranks)
    bars = [_bar([cell for cell in cells if cell.rank == rank], schedule, per_time, end) for rank in ranks]
    yield from framed([f"rank {rank}  " for rank in ranks], bars, width)
    yield ""
    yield (
        f"bubble: {percent(idle_share(cells, schedule.num_ranks))} of the total time as executed, "
        f"{percent(timeline.bubble_share())} simulated; it took {end:.1f}, simulated {float(timeline.makespan):g}"
    )
    yield other_order(cells, schedule) or "order: that of the schedule on every rank"


def _bar(row: Sequence[Cell], schedule: Schedule, per_time: float, end: float) -> str:
    bar = ""
    for cell in row:
        first, last = round(cell.begin * per_time), round(cell.end * per_time)
        bar = (bar.ljust(first, ".") + _label(cell, schedule)[: last - first]).ljust(last)
    return bar.ljust(math.ceil(end * per_time), ".")


def other_order(cells: Sequence[Cell], schedule: Schedule) -> str:
    """Where the executed order leaves the schedule's; empty where it does not.

    It is that of forwards and the ends of backwards; a gradient of the input that nobody waits for may come later.
    """
    for rank, actions in enumerate(schedule):
        wanted = [str(part) for action in actions for part in action.parts if part.kind is not Kind.INPUT]
        labels = [cell.label for cell in cells if cell.rank == rank and cell.kind is not Kind.INPUT]
        done = list(dict.fromkeys(labels))  # a forward may be done again: to find out shapes, or for activations
        if wanted != done:
            place = next(
                i for i, pair in enumerate(zip([*wanted, ""], [*done, ""], strict=False)) if pair[0] != pair[1]
            )
            return (
                f"order: rank {rank} did {' '.join(done[place : place + 4]) or 'nothing more'} where the schedule has "
                f"{' '.join(wanted[place : place + 4]) or 'nothing more'}. See: pytest --claim=pipeline.order"
            )
    return ""


def _label(cell: Cell, schedule: Schedule) -> str:
    return label(Action(cell.kind, cell.stage, cell.microbatch), schedule.stages_of(cell.rank))
