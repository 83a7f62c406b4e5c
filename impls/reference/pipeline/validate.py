"""Whether a schedule is right, found without processes: all work once, in a possible order, and nobody waits for ever.

A stage does three works for a microbatch: the forward (F), the gradient of its input (I or B) and those of its weights
(W or B). What can be wrong is looked for in this order, up to the first that there is: the rest would follow from it.

    misplaced          an action on a rank that does not hold its stage
    missing, doubled   works are counted, so that one too many does not make up for one that nobody does
    too early          within a rank: gradients before the forward, W before its I
    deadlock, blocked  ranks wait for each other in a circle: for results, or for somebody to take theirs (`Sends`)
    out of turn        a message is taken before one that was sent earlier, where only the order tells them apart
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from impls.reference.pipeline.actions import KINDS, Action, Kind, Schedule
from impls.reference.pipeline.gantt import Place, lists
from impls.reference.pipeline.links import Links
from impls.reference.pipeline.rendezvous import Sends, Wait, deadlock, out_of_turn

_SHOWN = 5  # so many faults are told, of the thousands that one mistake can make
_LIKELY = {
    ("misplaced",): "another map from stages to ranks than the schedule's",
    ("missing",): "a range of microbatches that ends too early",
    ("doubled",): "a range of microbatches that begins too early, or a B beside its I and W",
    ("missing", "doubled"): "an action with the wrong microbatch or the wrong stage",
    ("too early",): "two actions of one rank have changed places",
    ("deadlock",): "too few forwards in a warm-up, or two actions of one rank have changed places",
    ("blocked",): "two ranks send to each other before they receive: post the sends (isend), or exchange in one call",
    ("out of turn",): "two actions of one rank have changed places; if not, messages need tags (Sends.POSTED)",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong: what kind of fault it is, a sentence, and where (rank, position in its list)."""

    kind: str
    text: str
    places: tuple[Place, ...]


class InvalidSchedule(ValueError):
    """A schedule that is wrong: the message says why, and shows where in the lists of the ranks."""

    def __init__(self, schedule: Schedule, found: list[Fault]) -> None:
        self.faults = found
        texts = [f"  {fault.kind}: {fault.text}" for fault in found]
        kinds = {fault.kind for fault in found}
        likely = next(text for known, text in _LIKELY.items() if set(known) == kinds)
        marked = {place for fault in found for place in fault.places}
        lines = [f"{schedule.name} is not valid", *texts, f"  Likely: {likely}.", lists(schedule, marked)]
        super().__init__("\n".join(lines))


def validate(schedule: Schedule, sends: Sends = Sends.ORDERED) -> None:
    """`InvalidSchedule`, a ValueError, unless `schedule` is right and gets through with messages that go by `sends`."""
    if found := faults(schedule, sends):
        raise InvalidSchedule(schedule, found)


def faults(schedule: Schedule, sends: Sends = Sends.ORDERED) -> list[Fault]:
    """What is wrong: the first few faults of the first kind that the schedule has."""
    index = _Index(schedule)
    for check in (_misplaced, _miscounted, _too_early):
        if found := list(itertools.islice(check(index), _SHOWN)):
            return found
    return list(itertools.islice(_waiting(schedule, sends), _SHOWN))


class _Index:
    """Where each action of a schedule is: ``count`` and ``last`` [kinds, S, M], the last place, -1 for none."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.slots = np.concatenate([column[column >= 0] for column in schedule.columns]).astype(np.intp)
        self.places = np.concatenate([np.flatnonzero(column >= 0) for column in schedule.columns])
        shape = (len(KINDS), schedule.num_stages, schedule.num_microbatches)
        self.count = np.bincount(self.slots, minlength=math.prod(shape)).reshape(shape)
        self.last = np.full(shape, -1)
        self.last.ravel()[self.slots] = self.places

    def place(self, flat: int) -> Place:
        """Rank and position."""
        rank, position = divmod(int(flat), self.schedule.slots.shape[1])
        return rank, position

    def of(self, kinds: Sequence[Kind], stage: int, microbatch: int) -> list[tuple[Action, Place]]:
        """All actions of these kinds for one microbatch on one stage, and where they are."""
        found = []
        for kind in kinds:
            slot = self.schedule.numbering.slot(kind, stage, microbatch)
            found += [(Action(kind, stage, microbatch), self.place(at)) for at in self.places[self.slots == slot]]
        return found


def _misplaced(index: _Index) -> Iterator[Fault]:
    schedule = index.schedule
    holders = np.array(schedule.placement.ranks)
    rows, microbatches = np.divmod(index.slots, schedule.num_microbatches)
    directions = microbatches * schedule.placement.num_directions // schedule.num_microbatches
    holder = holders[directions, rows % schedule.num_stages]
    for at in np.flatnonzero(holder != index.places // schedule.slots.shape[1]):
        place = index.place(index.places[at])
        action = schedule.numbering.action(index.slots[at])
        text = f"{action} is on rank {place[0]} ({_nth(place[1])}), but stage {action.stage} is on rank {holder[at]}"
        yield Fault(kind="misplaced", text=text, places=(place,))


def _miscounted(index: _Index) -> Iterator[Fault]:
    """A stage does three works for a microbatch; forward, gradient of the input, gradients of the weights."""
    count = dict(zip(KINDS, index.count, strict=True))
    inputs, weights = (count[Kind.BACKWARD] + count[half] for half in (Kind.INPUT, Kind.WEIGHT))
    works = [
        ("forward", count[Kind.FORWARD], [Kind.FORWARD]),
        ("backward", np.where(inputs == weights, inputs, 1), [Kind.BACKWARD, Kind.INPUT, Kind.WEIGHT]),
        ("gradient of the input", np.where(inputs == weights, 1, inputs), [Kind.BACKWARD, Kind.INPUT]),
        ("gradient of the weights", np.where(inputs == weights, 1, weights), [Kind.BACKWARD, Kind.WEIGHT]),
    ]
    for name, done, kinds in works:
        for stage, microbatch in np.argwhere(done != 1).tolist():
            rank = index.schedule.rank_of(stage, microbatch)
            what = f"{name} of microbatch {microbatch} on stage {stage}"
            if not done[stage, microbatch]:
                end = (rank, int(index.schedule.lengths[rank]))
                yield Fault(kind="missing", text=f"the {what} (rank {rank}) is not done", places=(end,))
            else:
                found = index.of(kinds, stage, microbatch)
                where = ", ".join(f"{action} ({_nth(place[1])})" for action, place in found)
                text = f"the {what} (rank {rank}) is done {done[stage, microbatch]} times: {where}"
                yield Fault(kind="doubled", text=text, places=tuple(place for _, place in found))


def _too_early(index: _Index) -> Iterator[Fault]:
    last = dict(zip(KINDS, index.last, strict=True))
    for first, second in ((Kind.FORWARD, Kind.BACKWARD), (Kind.FORWARD, Kind.INPUT), (Kind.INPUT, Kind.WEIGHT)):
        wrong = (last[second] >= 0) & (last[first] >= last[second])
        for stage, microbatch in np.argwhere(wrong).tolist():
            early, late = (index.place(last[kind][stage, microbatch]) for kind in (second, first))
            actions = Action(second, stage, microbatch), Action(first, stage, microbatch)
            text = f"rank {early[0]} has {actions[0]} ({_nth(early[1])}) no later than {actions[1]} ({_nth(late[1])})"
            yield Fault(kind="too early", text=text, places=(early, late))


def _waiting(schedule: Schedule, sends: Sends) -> Iterator[Fault]:
    links = Links.of(schedule)
    if circle := deadlock(schedule, links, sends):
        text = "; ".join(_told(schedule, wait) for wait in circle)
        kind = "blocked" if any(wait.sending for wait in circle) else "deadlock"
        yield Fault(kind=kind, text=text, places=tuple((wait.rank, wait.position) for wait in circle))
    elif sends is Sends.ORDERED:
        for wait in out_of_turn(schedule, links):
            own, other = _action(schedule, wait.rank, wait.position), _action(schedule, wait.other, wait.other_position)
            text = (
                f"rank {wait.rank} takes the result of {other} for {own} before one that rank {wait.other} sent earlier"
            )
            yield Fault(kind="out of turn", text=text, places=((wait.rank, wait.position),))


def _told(schedule: Schedule, wait: Wait) -> str:
    own, other = _action(schedule, wait.rank, wait.position), _action(schedule, wait.other, wait.other_position)
    if wait.sending:
        return f"rank {wait.rank} has done {own} and waits until rank {wait.other} takes the result for {other}"
    return f"rank {wait.rank} waits with {own} for the result of {other} on rank {wait.other}"


def _action(schedule: Schedule, rank: int, position: int) -> Action:
    beside = -1 if schedule.beside is None else int(schedule.beside[rank, position])
    return schedule.numbering.action(int(schedule.slots[rank, position]), beside)


def _nth(position: int) -> str:
    return f"number {position + 1} in its list"
