"""Pipeline: 1F1B with one forward too many ahead."""

from __future__ import annotations

from impls.mutants import _pipelines
from impls.reference.pipeline.actions import Schedule

BREAKS = ("pipeline.order", "pipeline.1f1b.memory")


def change(name: str, schedule: Schedule) -> Schedule:
    """The first backward of each rank changes places with the forward behind it."""
    if name != "1f1b":
        return schedule
    lists = []
    for row in schedule:
        first = next(place for place, action in enumerate(row) if action.kind == "B")
        forwards = [place for place, action in enumerate(row) if action.kind == "F" and place > first]
        while forwards:
            place = forwards.pop(0)
            row[place - 1], row[place] = row[place], row[place - 1]
        lists.append(row)
    return Schedule.from_actions(name, schedule.num_microbatches, schedule.placement, lists)


train_step = _pipelines.with_schedule(change)
