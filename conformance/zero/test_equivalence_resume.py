"""Training goes on from a saved state as if it had never stopped: on as many ranks, and on more or fewer."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from conformance.checks import Judge, Subject
from conformance.loop.single import batches
from conformance.zero import own_rule, resume_programs
from conformance.zero.equivalence import judge_plans, judge_trained, stages, trained
from conformance.zero.plan import Plan

SPLIT = 2  # steps before, and after
# Adam: its state has a step count besides the moments. Groups: a state dict has their options too.
ADAM: dict[str, Any] = {"optimizer": "AdamW", "options": {"lr": 0.05, "betas": (0.5, 0.9)}}
SGD: dict[str, Any] = {"optimizer": "SGD", "options": {"lr": 0.1, "momentum": 0.9}}


@functools.cache
def plans_of(model: str, before: int, after: int) -> list[Plan]:
    """Two steps on `before` ranks and two on `after`."""
    data = batches(23, before, steps=SPLIT, real=True) + batches(29, after, steps=SPLIT, real=True)
    return [Plan(data=data, model=model, **how) for how in (SGD, ADAM)]


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_training_goes_on_from_a_saved_state(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    plans = plans_of("frozen", world_size, world_size) + plans_of("tied", world_size, world_size)
    judge_plans(subject, judge, stage, world_size, plans, way="saved_and_resumed", at=SPLIT)


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="contract"))
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2)])
def test_training_goes_on_with_another_number_of_ranks(
    subject: Subject, judge: Judge, stage: str, before: int, after: int
) -> None:
    plans = own_rule.where_it_chooses(subject, stage, before, plans_of("uneven", before, after))
    for plan in plans:
        first, then = plan.part(slice(SPLIT)), plan.part(slice(SPLIT, None))
        saved = subject.run(resume_programs.save, before, stage, first.parts(before)).values
        if "missing" in saved[0]:
            judge.not_provided(saved[0]["missing"])
        went_on = subject.run(resume_programs.resume, after, stage, then.parts(after), saved[0]["saved"]).values
        judge_trained(judge, [trained(subject, stage, plan, went_on, SPLIT)])
