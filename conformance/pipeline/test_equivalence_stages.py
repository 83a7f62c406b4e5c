"""A pipeline leaves the gradients of a single process whatever its stages are, and whatever passes between them."""

from __future__ import annotations

import pytest
import torch

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.case import Case
from conformance.pipeline.equivalence import SCHEDULES, judge_cases, schedules

CONTRACT = claim("pipeline.equivalence", tier="contract", provides=["train_step"])
EXOTIC = claim("pipeline.equivalence", tier="exotic", provides=["train_step"])
SIZES = (2,) * 8
contract = pytest.mark.parametrize("schedule", schedules(*SCHEDULES, check_of=CONTRACT))
exotic = pytest.mark.parametrize("schedule", schedules(*SCHEDULES, check_of=EXOTIC))


def num_ranks(schedule: str) -> int:
    """Three where eight microbatches can go through them; DualPipe wants an even number, interleaving a divisor."""
    return {"dualpipe": 4, "interleaved_1f1b": 2}.get(schedule, 3)


@contract
def test_frozen_parameters_stay_without_gradient_and_let_others_learn(
    subject: Subject, judge: Judge, schedule: str
) -> None:
    judge_cases(subject, judge, schedule, num_ranks(schedule), [Case(sizes=SIZES, model="frozen")])


@contract
def test_several_tensors_pass_a_boundary_and_some_want_no_gradient(
    subject: Subject, judge: Judge, schedule: str
) -> None:
    judge_cases(subject, judge, schedule, num_ranks(schedule), [Case(sizes=SIZES, model="several")])


@contract
def test_a_weight_tied_between_the_first_and_the_last_stage_has_the_sum(
    subject: Subject, judge: Judge, schedule: str
) -> None:
    cases = [Case(sizes=SIZES, model="tied"), Case(sizes=SIZES, model="tied", steps=2)]
    judge_cases(subject, judge, schedule, num_ranks(schedule), cases)


@exotic
def test_stages_without_parameters_pass_gradients_on(subject: Subject, judge: Judge, schedule: str) -> None:
    judge_cases(subject, judge, schedule, num_ranks(schedule), [Case(sizes=SIZES, model="nothing")])


@exotic
def test_an_output_that_is_not_used_for_some_microbatches_is_no_obstacle(
    subject: Subject, judge: Judge, schedule: str
) -> None:
    judge_cases(subject, judge, schedule, num_ranks(schedule), [Case(sizes=SIZES, model="sometimes")])


@exotic
def test_doubles_are_passed_on_as_doubles(subject: Subject, judge: Judge, schedule: str) -> None:
    real = Case(sizes=(3,) * 4, model="linear", dtype=torch.float64, real=True)
    judge_cases(subject, judge, schedule, 2, [Case(sizes=(2,) * 4, dtype=torch.float64), real])


@exotic
def test_bfloat16_is_passed_on_as_bfloat16(subject: Subject, judge: Judge, schedule: str) -> None:
    judge_cases(subject, judge, schedule, 2, [Case(sizes=(2,) * 4, dtype=torch.bfloat16)])
