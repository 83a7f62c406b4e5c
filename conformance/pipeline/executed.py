"""An executed order as a `Schedule` of ours, from the events of every rank, and whether it is what its name promises.

A schedule is known by its properties, not by one list: 1F1B by its warm-up and its alternation, Zero Bubble and the
bidirectional ones by the idle time and the activations that their order makes possible. Where the weight gradients go
is the implementation's business as long as these hold.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from conformance.pipeline.case import SEVERAL, placement
from conformance.pipeline.observed import Event
from impls.reference.pipeline import Action, Kind, Schedule, faults, peak_activations, simulate
from impls.reference.pipeline.names import named

WHOLE = ("gpipe", "1f1b", "interleaved_1f1b")  # backward is one action there
GAPLESS = ("zb_h2", "zbv")  # no rank idles between its first action and its last
TWIN = {"dualpipev": "zbv"}  # on the same stages, gapless, with no more activations


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """How an order differs from what its name promises."""

    text: str
    expected: str
    observed: str


def actions(events: Sequence[Event], issued_ns: Sequence[int], *, splits: bool) -> list[Action]:
    """One rank's events as actions: gradients of input and weight that come together are one backward.

    They come together when nothing else was computed in between and, where the schedule `splits` backward, no
    operation was issued either: an input gradient that is on its way before the weight gradient is computed makes the
    difference.
    """
    found: list[Action] = []
    last: Event | None = None  # what the next one may belong to
    for event in _once(events):
        action = Action(Kind(event.kind), event.stage, event.microbatch)
        if event.kind == "W" and event.stage == 0:  # no gradient of its input is ever wanted
            action = dataclasses.replace(action, kind=Kind.BACKWARD)
        elif last is not None and _belong(last, event) and not (splits and _sent(issued_ns, last, event)):
            found[-1] = dataclasses.replace(action, kind=Kind.BACKWARD)
            last = None
            continue
        found.append(action)
        last = event
    return found


def wrong(schedule: str, lists: Sequence[Sequence[Action]], num_microbatches: int) -> Wrong | None:
    """What is not as `schedule` promises; None if all is."""
    if (found := _incomplete(schedule, lists, num_microbatches)) is not None:
        return found
    if schedule == "gpipe":
        return next(_not_gpipe(lists), None)
    if schedule == "1f1b":
        return next(_not_1f1b(lists, num_microbatches), None)
    return _not_as_good(schedule, lists, num_microbatches)


def text(row: Sequence[Action]) -> str:
    """A rank's actions; the stage is left out where there is one."""
    if len({action.stage for action in row}) == 1:
        return " ".join(f"{action.kind}{action.microbatch}" for action in row)
    return " ".join(map(str, row))


# -- from events -------------------------------------------------------------------------------------------------------


def _once(events: Sequence[Event]) -> Iterator[Event]:
    """Without trial runs, and with one forward where it is done again for the backward."""
    again = _recomputed(events)
    return (event for at, event in enumerate(_without_trials(events)) if at not in again)


def recomputed(events: Sequence[Event]) -> int:
    """How many forwards with gradients were done again directly before their own backward."""
    return len(_recomputed(events))


def _recomputed(events: Sequence[Event]) -> set[int]:
    """Places among the events without trial runs.

    Activations are computed again there: GPipe's re-materialization (Huang et al. 2019, 1811.06965, section 2.3). A
    forward that is done again anywhere else is no part of a backward.
    """
    kept = list(_without_trials(events))
    first: dict[tuple[int, int], int] = {}
    for at, event in enumerate(kept):
        if event.kind == "F":
            first.setdefault(event[1:3], at)
    return {
        at
        for at, (event, after) in enumerate(itertools.pairwise(kept))
        if event.kind == "F" and first[event[1:3]] < at and after.kind in "IW" and after[1:3] == event[1:3]
    }


def _without_trials(events: Sequence[Event]) -> Iterator[Event]:
    """A forward that was silent at first, and is done again with gradients, counts where it was silent."""
    with_backward = {_call(event) for event in events if event.kind in "IW"}
    kept = {(event.stage, event.microbatch) for event in events if event.kind == "F"}
    silent = {(event.stage, event.microbatch) for event in events if event.kind == "f"}
    again = bool(silent) and silent >= kept  # every forward was silent at first
    for at, event in enumerate(events):
        if event.kind == "f":
            if again:
                yield event._replace(kind="F")
        elif event.kind != "F" or not (again or _is_trial(events, at, with_backward)):
            yield event


def _is_trial(events: Sequence[Event], at: int, with_backward: set[tuple[int, int, int]]) -> bool:
    """Whether the stage's next forward is of the same first microbatch, another has the backward, and this has none."""
    event = events[at]
    forwards = [each for each in events[at + 1 :] if each.kind == "F" and each.stage == event.stage]
    others = [each for each in events if each.kind == "F" and each[1:3] == event[1:3] and each.call != event.call]
    has_backward = any(_call(each) in with_backward for each in others)
    comes_next = bool(forwards) and forwards[0].microbatch == 0
    return event.microbatch == 0 and _call(event) not in with_backward and has_backward and comes_next


def _call(event: Event) -> tuple[int, int, int]:
    return event.stage, event.microbatch, event.call


def _belong(last: Event, event: Event) -> bool:
    return _call(last) == _call(event) and {last.kind, event.kind} == {"I", "W"}


def _sent(issued_ns: Sequence[int], last: Event, event: Event) -> bool:
    return any(last.at_ns < at < event.at_ns for at in issued_ns)


# -- properties --------------------------------------------------------------------------------------------------------


def _incomplete(schedule: str, lists: Sequence[Sequence[Action]], num_microbatches: int) -> Wrong | None:
    """Each microbatch once forward and once backward on every stage, in an order that can be."""
    places = placement(schedule, len(lists))
    for rank, row in enumerate(lists):
        for what, kinds in (("forward", "F"), ("gradient of the weights", "BW")):
            seen = Counter((action.stage, action.microbatch) for action in row if action.kind in kinds)
            wanted = Counter(
                (stage, microbatch)
                for microbatch in range(num_microbatches)
                for stage, holder in enumerate(places.ranks[places.direction_of(microbatch, num_microbatches)])
                if holder == rank
            )
            for stage, microbatch in sorted((seen - wanted) | (wanted - seen)):
                return Wrong(
                    text=f"rank {rank} does the {what} of microbatch {microbatch} on stage {stage}",
                    expected=f"{wanted[stage, microbatch]} times",
                    observed=f"{seen[stage, microbatch]} times: {text(row)}",
                )
    found = faults(_schedule(schedule, lists, num_microbatches))
    of_messages = {"deadlock", "blocked", "out of turn"}  # it was executed: nobody waited for ever
    told = [fault.text for fault in found if fault.kind not in of_messages]
    if told:
        return Wrong(text=told[0], expected="an order that can be", observed=text(lists[0]))
    return None


def _schedule(schedule: str, lists: Sequence[Sequence[Action]], num_microbatches: int) -> Schedule:
    return Schedule.from_actions(schedule, num_microbatches, placement(schedule, len(lists)), lists)


def _not_gpipe(lists: Sequence[Sequence[Action]]) -> Iterator[Wrong]:
    for rank, row in enumerate(lists):
        kinds = "".join(action.kind for action in row)
        if "F" in kinds.lstrip("F"):
            yield Wrong(
                text=f"rank {rank} begins with backward before all microbatches went forward",
                expected="all forwards, then all backwards",
                observed=text(row),
            )


def _not_1f1b(lists: Sequence[Sequence[Action]], num_microbatches: int) -> Iterator[Wrong]:
    for rank, row in enumerate(lists):
        ahead = min(num_microbatches, len(lists) - rank - 1)
        wanted = "F" * ahead + "FB" * (num_microbatches - ahead) + "B" * ahead
        kinds = "".join(action.kind for action in row)
        if kinds != wanted:
            at = next((i for i, pair in enumerate(zip(kinds, wanted, strict=False)) if len({*pair}) > 1), len(wanted))
            first = f"action {at} is {text(row[at : at + 1])}" if at < len(row) else "an action is missing"
            first += f", and {kinds.find('B')} forwards come before the first backward"
            yield Wrong(
                text=f"rank {rank} is not in the order of 1F1B: {first}",
                expected=f"{ahead} forwards ahead, then one forward and one backward in turn: {' '.join(wanted)}",
                observed=text(row),
            )
        order = {kind: [action.microbatch for action in row if action.kind == kind] for kind in ("F", "B")}
        if order["F"] != order["B"]:
            yield Wrong(
                text=f"rank {rank} goes backward in another order of microbatches than forward",
                expected=f"backward of {order['F']}",
                observed=f"backward of {order['B']}",
            )


def _not_as_good(schedule: str, lists: Sequence[Sequence[Action]], num_microbatches: int) -> Wrong | None:
    """More idle time than the schedule has at equal costs, or more activations held."""
    model = named(schedule, len(lists), num_microbatches, SEVERAL.get(schedule, 1))
    executed = _schedule(schedule, lists, num_microbatches)
    for barrier in (True, False) if schedule in GAPLESS else (True,):
        idle, allowed = (max(simulate(each).bubble(barrier=barrier)) for each in (executed, model))
        if idle > allowed:
            worst, when = len(lists) - 1, "in a step" if barrier else "between its first action and its last"
            return Wrong(
                text=f"the executed order idles more than {schedule} does: a forward, an input gradient and a weight "
                "gradient each taken for 1",
                expected=f"{_shown(allowed)} idle on each rank {when}",
                observed=f"{_shown(idle)}; rank {worst} did {text(lists[worst])}",
            )
    if (
        (other := TWIN.get(schedule)) is not None
        and len(lists) > 1
        and not max(simulate(executed).bubble(barrier=False))
    ):
        return Wrong(
            text=f"no rank idles between its first action and its last: that is the order of {other}, not {schedule}",
            expected="idle time between the first action and the last on all ranks but one",
            observed=f"none; rank 0 did {text(lists[0])}",
        )
    for rank, (found, bound) in enumerate(zip(peak_activations(executed), peak_activations(model), strict=True)):
        if found > bound:
            return Wrong(
                text=f"rank {rank} holds more microbatches than under {schedule}",
                expected=f"at most {_shown(bound)}",
                observed=f"{_shown(found)}: {text(lists[rank])}",
            )
    return None


def _shown(figure: object) -> str:
    return str(figure) if isinstance(figure, Fraction) and figure.denominator == 1 else f"{float(figure):g}"  # type: ignore[arg-type]
