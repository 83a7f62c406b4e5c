"""An implementation's schedules and bubbles on pytest's side: what was asked for, and what came.

    four, eight = legal(subject, judge, [Asked("one_f_one_b", 4, 8), Asked("one_f_one_b", 8, 8)])     both are valid

Schedules are ours from here on, to be simulated and counted; none of them was executed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn

from conformance.checks import Judge, Subject
from conformance.pipeline import schedule_programs as programs
from conformance.verdict import Witness
from impls.reference.pipeline.actions import Numbering, Schedule
from impls.reference.pipeline.placement import Placement
from impls.reference.pipeline.rendezvous import Sends
from impls.reference.pipeline.validate import InvalidSchedule, faults
from impls.schedule_calls import NUM_CHUNKS

NO_SCHEDULE = {"instead": "no_schedule"}  # the hint of a check that did not get so far as what its claim is about
_CHUNKS = {"zbv": 2, "dualpipev": 2, "interleaved_1f1b": NUM_CHUNKS}  # stages on a rank, where not one


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A call: a name of the contract, N ranks, M microbatches."""

    name: str
    num_ranks: int
    num_microbatches: int

    def __str__(self) -> str:
        return f"{self.name}({self.num_ranks}, {self.num_microbatches})"

    @property
    def num_stages(self) -> int:
        """S, the stages that the schedule of this name has."""
        return _CHUNKS.get(self.name, 1) * self.num_ranks


@dataclasses.dataclass(frozen=True, slots=True)
class Exact:
    """The value of a returned number, and the relative error that its type allows after a few operations."""

    value: Fraction
    slack: Fraction

    def is_near(self, other: Fraction) -> bool:
        """Whether the two are the same number, as far as this type can tell."""
        return abs(self.value - other) <= self.slack * max(abs(other), Fraction(1, 1000))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """No schedule and no number: what came in their place. `refuses`: a ValueError was raised."""

    text: str
    refuses: bool = False
    raised: bool = False


def schedules(subject: Subject, judge: Judge, asked: Sequence[Asked]) -> list[Schedule | Nothing]:
    """What is returned for each call, right or wrong."""
    return [_schedule(one, found) for one, found in _fetch(subject, judge, programs.schedules, asked)]


def bubbles(subject: Subject, judge: Judge, asked: Sequence[Asked]) -> list[Exact | Nothing]:
    """The number that is returned for each call."""
    return [_number(found) for _, found in _fetch(subject, judge, programs.bubbles, asked)]


def legal(subject: Subject, judge: Judge, asked: Sequence[Asked]) -> list[Schedule]:
    """The schedules of calls that are allowed, all valid; else the check ends here."""
    found = returned(subject, judge, asked)
    for one, schedule in zip(asked, found, strict=True):
        if fault := fault_of(one, schedule):
            judge.violated(
                fault,
                expected="every microbatch's forward and backward once on every stage, and no rank that waits for ever",
                observed=fault.splitlines()[0],
                witness=Witness.SIMULATION,
                data=NO_SCHEDULE,
            )
    return found


def beside(subject: Subject, asked: Asked) -> Schedule | None:
    """The schedule of another name that stands beside the one examined; None where it is not there, or not valid.

    What is wrong with it is told by its own claims, and the one examined is no worse for it.
    """
    if not subject.has(asked.name):
        return None
    calls = [dataclasses.astuple(asked)]
    (found,) = subject.run(programs.schedules, 1, calls, bare=True, trace=False).values[0]
    schedule = None if "missing" in found else _schedule(asked, found)
    return schedule if isinstance(schedule, Schedule) and not fault_of(asked, schedule) else None


def returned(subject: Subject, judge: Judge, asked: Sequence[Asked]) -> list[Schedule]:
    """The schedules of calls that are allowed, right or wrong; where one is none, the check ends here."""
    found = schedules(subject, judge, asked)
    for one, schedule in zip(asked, found, strict=True):
        if isinstance(schedule, Nothing):
            _end(subject, judge, one, schedule, programs.schedules)
    return [schedule for schedule in found if isinstance(schedule, Schedule)]


def legal_bubbles(subject: Subject, judge: Judge, asked: Sequence[Asked]) -> list[Exact]:
    """The numbers of calls that are allowed; where one is none, the check ends here."""
    found = bubbles(subject, judge, asked)
    for one, number in zip(asked, found, strict=True):
        if isinstance(number, Nothing):
            _end(subject, judge, one, number, programs.bubbles)
    return [number for number in found if isinstance(number, Exact)]


def fault_of(asked: Asked, schedule: Schedule) -> str:
    """Why it is not valid, with the place marked in its lists; empty if it is. Messages may have tags."""
    if schedule.num_stages != asked.num_stages:
        return f"{asked}: expected {asked.num_stages} stages on {asked.num_ranks} ranks, got {schedule.num_stages}"
    found = faults(schedule, Sends.POSTED)
    return str(InvalidSchedule(schedule, found)) if found else ""


def judge_refused(subject: Subject, judge: Judge, asked: Sequence[Asked], *, rule: str, numbers: bool = False) -> None:
    """Calls that are not allowed raise ValueError. A schedule that is valid all the same is as good as that."""
    fetched = bubbles(subject, judge, asked) if numbers else schedules(subject, judge, asked)
    for one, found in zip(asked, fetched, strict=True):
        if isinstance(found, Nothing) and found.refuses:
            continue
        if isinstance(found, Schedule) and min(one.num_ranks, one.num_microbatches) > 0 and not fault_of(one, found):
            continue
        if isinstance(found, Exact):
            observed = f"returns {float(found.value):g}"
        elif isinstance(found, Schedule):
            observed = "returns a schedule that is not valid"
        else:
            observed = found.text if found.raised or numbers else "returns what is no schedule"
        judge.violated(
            f"{one} {observed}: it needs {rule}, and anything else is refused with a ValueError",
            expected="ValueError",
            observed=observed,
        )
    judge.holds(
        expected="ValueError",
        observed="ValueError, or a schedule that is valid" if not numbers else "ValueError",
        witness=Witness.VALUE,
        message=f"refused unless {rule}: {', '.join(map(str, asked))}",
        examples=len(asked),
    )


def _fetch(subject: Subject, judge: Judge, program: Any, asked: Sequence[Asked]) -> list[tuple[Asked, dict[str, Any]]]:
    calls = [dataclasses.astuple(one) for one in asked]
    found = subject.run(program, 1, calls, bare=True, trace=False).values[0]
    for one in found:
        if "missing" in one:
            judge.not_provided(one["missing"])
    return list(zip(asked, found, strict=True))


def _schedule(asked: Asked, found: dict[str, Any]) -> Schedule | Nothing:
    if "slots" not in found:
        return _nothing(found)
    placement = Placement(tuple(map(tuple, found["ranks"])))
    dtype = Numbering(placement.num_stages, asked.num_microbatches).dtype
    slots, beside = (
        None if table is None else table.numpy().astype(dtype) for table in (found["slots"], found["beside"])
    )
    assert slots is not None
    return Schedule(
        name=str(asked), num_microbatches=asked.num_microbatches, placement=placement, slots=slots, beside=beside
    )


def _number(found: dict[str, Any]) -> Exact | Nothing:
    if "numerator" not in found:
        return _nothing(found)
    slack = Fraction(1, 10**9) if found["bits"] >= 64 else Fraction(1, 10**5)
    return Exact(Fraction(found["numerator"], found["denominator"]), slack)


def _nothing(found: dict[str, Any]) -> Nothing:
    if "unreadable" in found:
        return Nothing(text=found["unreadable"])
    return Nothing(text=f"raises {found['raised']}: {found['text']}", refuses=found["refuses"], raised=True)


def _end(subject: Subject, judge: Judge, asked: Asked, found: Nothing, program: Any) -> NoReturn:
    """A legal call gave nothing: what it raises, it raises once more, for its place to be shown."""
    if found.raised:
        subject.run(program, 1, [dataclasses.astuple(asked)], strict=True, bare=True, trace=False)
    told = found.text if found.text.startswith(str(asked)) else f"{asked}: {found.text}"
    data = NO_SCHEDULE if program is programs.schedules else None
    judge.violated(told, expected=f"what {asked.name} is to return", observed=found.text, data=data)
