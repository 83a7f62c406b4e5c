"""What lesson 79 looks at: schedules and bubble functions of an implementation, found in a rank process, as plain data.

Prints nothing. A schedule crosses to the lesson as texts of actions, and becomes a schedule again there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from fixtures.world.context import RankContext
from impls.handover import NotProvided
from impls.loading import Implementation
from impls.reference.pipeline.actions import Action, Schedule
from impls.reference.pipeline.bubbles import NUM_MICROBATCHES, NUM_STAGES
from impls.reference.pipeline.names import SCHEDULES, named
from impls.reference.pipeline.placement import Placement
from impls.schedule_calls import NUM_CHUNKS, schedule_of
from impls.schedule_forms import ScheduleError

# The name of a schedule -> what the contract calls it, and the function that gives its bubble.
IN_CONTRACT = {**{name: name for name in SCHEDULES}, "1f1b": "one_f_one_b"}
BUBBLES = {
    "gpipe": "bubble_fraction",
    "1f1b": "bubble_1f1b",
    "zb_h1": "bubble_zero_bubble",
    "dualpipe": "bubble_dualpipe",
    "dualpipev": "bubble_dualpipev",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One schedule of one implementation at one size, and its bubble function's figure.

    `schedule` is None where `trouble` says why the implementation's cannot be read. `own` is False for the reference's
    in place of one that is not provided. `bubble` is None where no function for it is provided.
    """

    impl: str
    name: str
    num_stages: int
    num_microbatches: int
    schedule: Schedule | None
    own: bool
    trouble: str = ""
    bubble: float | None = None

    @property
    def bubble_call(self) -> str:
        """The call that gave `bubble`."""
        return f"{BUBBLES[self.name]}({self.num_stages}, {self.num_microbatches})"


def constants(ctx: RankContext) -> dict[str, int]:
    """Rank program: how many ranks and microbatches the implementation takes when nobody says otherwise."""
    assert ctx.impl is not None
    return sizes_of(ctx.impl)


def look(
    ctx: RankContext, name: str, num_stages: int, num_microbatches: int, num_chunks: int = NUM_CHUNKS
) -> dict[str, Any]:
    """Rank program: what `observed` makes an `Observed` of. Raises what the implementation raises."""
    assert ctx.impl is not None
    return of(ctx.impl, name, num_stages, num_microbatches, num_chunks)


def sizes_of(impl: Implementation) -> dict[str, int]:
    """`constants` of an implementation that this process has loaded; the reference's where it has none."""
    usual = {"NUM_STAGES": NUM_STAGES, "NUM_MICROBATCHES": NUM_MICROBATCHES}
    found = {name: impl.get(name) if impl.reason(name) is None else value for name, value in usual.items()}
    for name, value in found.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} of {impl.name} is {value!r}: a whole number of at least 1 was expected")
    return {"num_stages": found["NUM_STAGES"], "num_microbatches": found["NUM_MICROBATCHES"]}


def of(
    impl: Implementation, name: str, num_stages: int, num_microbatches: int, num_chunks: int = NUM_CHUNKS
) -> dict[str, Any]:
    """`look` for an implementation that this process has loaded."""
    sizes: dict[str, Any] = {"num_stages": num_stages, "num_microbatches": num_microbatches}
    found = {"impl": impl.name, "name": name, **sizes}
    try:
        schedule = schedule_of(impl, IN_CONTRACT[name], num_stages, num_microbatches, num_chunks)
    except NotProvided:
        return found | _crossing(named(name, *sizes.values(), num_chunks), own=False) | _bubble(impl, name, sizes)
    except ScheduleError as error:
        return found | {"actions": None, "ranks": None, "own": True, "trouble": str(error)}
    return found | _crossing(schedule, own=True) | _bubble(impl, name, sizes)


def observed(found: Mapping[str, Any]) -> Observed:
    """Put together again what crossed."""
    fields = dict(found)
    actions, ranks = fields.pop("actions"), fields.pop("ranks")
    schedule = None
    if actions is not None:
        placement = Placement(tuple(map(tuple, ranks)))
        lists = [[Action.parse(text) for text in row] for row in actions]
        schedule = Schedule.from_actions(fields["name"], fields["num_microbatches"], placement, lists)
    return Observed(**fields, schedule=schedule)


def _crossing(schedule: Schedule, *, own: bool) -> dict[str, Any]:
    return {"actions": [list(map(str, row)) for row in schedule], "ranks": schedule.placement.ranks, "own": own}


def _bubble(impl: Implementation, name: str, sizes: Mapping[str, Any]) -> dict[str, Any]:
    if name not in BUBBLES or impl.reason(BUBBLES[name]) is not None:
        return {}
    try:
        return {"bubble": float(impl.call(BUBBLES[name], **sizes))}
    except NotProvided:
        return {}
