"""A pipeline leaves the gradients of a single process: plain stages, all schedules, any number of microbatches."""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.case import Case
from conformance.pipeline.equivalence import (
    PLAIN,
    SCHEDULES,
    judge_cases,
    judge_losses,
    judge_on_some,
    schedules,
)

CORE = claim("pipeline.equivalence", provides=["train_step"])
CONTRACT = claim("pipeline.equivalence", tier="contract", provides=["train_step"])
OTHERS = tuple(name for name in SCHEDULES if name not in PLAIN)
FOUR, EIGHT = Case(sizes=(2,) * 4), Case(sizes=(2,) * 8)
REAL = [Case(sizes=(3,) * 5, model="linear", real=True), Case(sizes=(2,) * 7, model="linear", real=True)]


@pytest.mark.parametrize("schedule", schedules(*PLAIN, check_of=CORE))
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_gradients_are_those_of_a_single_process(
    subject: Subject, judge: Judge, schedule: str, world_size: int
) -> None:
    judge_cases(subject, judge, schedule, world_size, [FOUR, EIGHT, *REAL])


@pytest.mark.parametrize("schedule", schedules(*PLAIN, check_of=CORE))
def test_losses_are_those_of_a_single_process(subject: Subject, judge: Judge, schedule: str) -> None:
    judge_losses(subject, judge, schedule, 3, FOUR)


@pytest.mark.parametrize("schedule", schedules(*OTHERS, check_of=CONTRACT))
def test_gradients_under_the_other_schedules_are_those_of_a_single_process(
    subject: Subject, judge: Judge, schedule: str
) -> None:
    judge_cases(subject, judge, schedule, 2, [FOUR, EIGHT])


@pytest.mark.parametrize("schedule", schedules(*OTHERS, check_of=CONTRACT))
def test_gradients_on_more_ranks_are_those_of_a_single_process(subject: Subject, judge: Judge, schedule: str) -> None:
    real = Case(sizes=(2,) * (8 if schedule == "dualpipe" else 6), model="linear", real=True)
    judge_cases(subject, judge, schedule, 4 if schedule == "dualpipe" else 3, [real])


@pytest.mark.parametrize("schedule", schedules(*OTHERS, check_of=CONTRACT))
def test_losses_under_the_other_schedules_are_those_of_a_single_process(
    subject: Subject, judge: Judge, schedule: str
) -> None:
    judge_losses(subject, judge, schedule, 2, FOUR)


@pytest.mark.parametrize("schedule", schedules(*PLAIN, check_of=CONTRACT))
def test_fewer_microbatches_than_ranks_are_trained(subject: Subject, judge: Judge, schedule: str) -> None:
    judge_cases(subject, judge, schedule, 3, [Case(sizes=(4,)), Case(sizes=(2, 2))])


@pytest.mark.parametrize("schedule", schedules(*SCHEDULES, check_of=CONTRACT))
def test_a_microbatch_of_twice_as_many_rows_counts_twice(subject: Subject, judge: Judge, schedule: str) -> None:
    real = Case(sizes=(3, 5, 2, 7), model="linear", real=True)
    judge_cases(subject, judge, schedule, 2, [Case(sizes=(1, 2, 1, 4)), Case(sizes=(8, 1, 1, 2, 1, 1, 1, 1)), real])


@pytest.mark.parametrize("schedule", schedules(*SCHEDULES, check_of=CONTRACT))
def test_gradients_of_a_second_step_are_added(subject: Subject, judge: Judge, schedule: str) -> None:
    judge_cases(subject, judge, schedule, 2, [Case(sizes=(2,) * 4, steps=2), Case(sizes=(2,) * 4, steps=3)])


@pytest.mark.parametrize("schedule", schedules(*PLAIN, "zb_h1", "dualpipe", check_of=CONTRACT))
def test_some_ranks_of_a_world_are_a_pipeline(subject: Subject, judge: Judge, schedule: str) -> None:
    judge_on_some(subject, judge, schedule, 3, [1, 2], FOUR)
