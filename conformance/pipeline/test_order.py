"""The order in which ranks compute is that of the schedule that was asked for: seen by hooks on the stages."""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.pipeline import executed
from conformance.pipeline.equivalence import AS_1F1B, PLAIN, SCHEDULES, schedules
from conformance.pipeline.performed import perform
from conformance.verdict import Witness

CORE = claim("pipeline.order", provides=["train_step"])
CONTRACT = claim("pipeline.order", tier="contract", provides=["train_step"])
OTHERS = tuple(name for name in SCHEDULES if name not in PLAIN)


def promises(subject: Subject, schedule: str) -> bool:
    """Whether the one schedule of which an implementation gives a list or a bubble is this one.

    Then that is what its pipeline has to run, where it cannot be told which.
    """
    named = {
        "gpipe": subject.has("gpipe") or subject.has("bubble_fraction"),
        "1f1b": subject.has("one_f_one_b") or subject.has("bubble_1f1b"),
    }
    return named[schedule] and sum(named.values()) == 1


def judge_order(subject: Subject, judge: Judge, schedule: str, world_size: int, count: int) -> None:
    """The executed order keeps what the schedule's name promises."""
    done = perform(subject, judge, schedule, world_size, count)
    wrong = executed.wrong(schedule, done.lists, count)
    if wrong is not None and not done.name:
        other = next(
            (each for each in PLAIN if each != schedule and executed.wrong(each, done.lists, count) is None), None
        )
        if other is not None and not promises(subject, schedule):
            judge.not_provided(f"{subject.name} takes no schedule, and what it runs is {other}")
    if wrong is not None:
        judge.violated(wrong.text, expected=wrong.expected, observed=wrong.observed, witness=Witness.TRACE)
    judge.holds(
        expected=f"the order of {schedule}, {world_size} ranks and {count} microbatches",
        observed=executed.text(done.lists[0]),
        witness=Witness.TRACE,
        message=f"forwards and gradients of input and weight as they were computed on every rank; {done.told}",
        data={"order": {f"rank {rank}": executed.text(row) for rank, row in enumerate(done.lists)}} | done.charts,
    )


@pytest.mark.parametrize("schedule", [*schedules("gpipe", check_of=CORE), pytest.param("1f1b", marks=[CORE, AS_1F1B])])
@pytest.mark.parametrize(("world_size", "count"), [(2, 4), (3, 6)])
def test_forwards_and_backwards_come_in_the_order_of_the_schedule(
    subject: Subject, judge: Judge, schedule: str, world_size: int, count: int
) -> None:
    judge_order(subject, judge, schedule, world_size, count)


@AS_1F1B
@pytest.mark.parametrize("schedule", schedules("1f1b", check_of=CONTRACT))
@pytest.mark.parametrize(("world_size", "count"), [(4, 7), (4, 4)])
def test_1f1b_keeps_its_order_where_microbatches_do_not_divide(
    subject: Subject, judge: Judge, schedule: str, world_size: int, count: int
) -> None:
    judge_order(subject, judge, schedule, world_size, count)


@pytest.mark.parametrize("schedule", schedules(*OTHERS, check_of=CONTRACT))
def test_the_other_schedules_idle_and_hold_no_more_than_their_names_promise(
    subject: Subject, judge: Judge, schedule: str
) -> None:
    world_size = 4 if schedule == "dualpipe" else 3
    judge_order(subject, judge, schedule, world_size, 8 if schedule == "dualpipe" else 6)
