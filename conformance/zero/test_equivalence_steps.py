"""What a training loop does besides: groups, schedules, accumulation, clipping, evaluation, layers without gradient."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest

from conformance.checks import Judge, Subject
from conformance.loop.single import batches
from conformance.zero import single
from conformance.zero.equivalence import judge_plans, stages
from conformance.zero.plan import Plan, rows_for_layers

SGD: dict[str, Any] = {"optimizer": "SGD", "options": {"lr": 0.1, "momentum": 0.9}}
ADAM: dict[str, Any] = {"optimizer": "Adam", "options": {"lr": 0.05}}
ADAMW: dict[str, Any] = {"optimizer": "AdamW", "options": {"lr": 0.05}}
RATES = [0.1, 0.02, 0.2, 0.05]
EXACT = {"lr": 0.25, "momentum": 0.5}
SHAPES = [[3, 2], [7], [2, 2]]


@functools.cache
def plan_of(model: str, world_size: int, *, steps: int = 4, micro: int = 1) -> Plan:
    """Real numbers, everything else to be chosen."""
    return Plan(data=batches(19, world_size, steps=steps, rows=4, micro=micro, real=True), model=model)


def _plans(plan: Plan, *optimizers: dict[str, Any], **changes: Any) -> list[Plan]:
    return [dataclasses.replace(plan, **optimizer, **changes) for optimizer in optimizers]


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_parameter_groups_keep_their_options(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    groups = [["bias", {"lr": 0.02, "weight_decay": 0.0}, 0], ["", {"lr": 0.1, "weight_decay": 0.2}, 0]]
    judge_plans(subject, judge, stage, world_size, _plans(plan_of("mlp", world_size), SGD, ADAMW, groups=groups))


@pytest.mark.parametrize("stage", stages("1", "2", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_group_may_be_added_later(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    groups = [["head.bias", {}, 0], ["head.weight", {}, 0], ["", {"lr": 0.02, "weight_decay": 0.2}, 2]]
    judge_plans(subject, judge, stage, world_size, _plans(plan_of("mlp", world_size), SGD, ADAM, groups=groups))


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_learning_rate_that_changes_is_seen(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    judge_plans(subject, judge, stage, world_size, _plans(plan_of("mlp", world_size), SGD, ADAM, rates=RATES))


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_gradients_of_microbatches_add_up(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    data = rows_for_layers(SHAPES, world_size, steps=3, micro=3)
    layers = Plan(data=data, shapes=SHAPES, real=False, is_exact=True, loss="weighted", options=EXACT)
    plans = [layers, *_plans(plan_of("shared", world_size, micro=2), SGD, ADAM)]
    judge_plans(subject, judge, stage, world_size, plans)


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_zero_grad_forgets_a_backward(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    plans = _plans(plan_of("mlp", world_size), SGD, ADAM)
    judge_plans(subject, judge, stage, world_size, plans, way="after_a_false_start")


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_clipping_is_by_the_norm_of_the_whole_gradient(
    subject: Subject, judge: Judge, stage: str, world_size: int
) -> None:
    plan = plan_of("mlp", world_size)
    norms = single.train(plan).norms
    clipping, idle = min(norms) / 4, max(norms) * 1.1
    plans = _plans(plan, SGD, max_norm=clipping) + _plans(plan, SGD, max_norm=idle)
    judge_plans(subject, judge, stage, world_size, plans)


@pytest.mark.parametrize("stage", stages("1", "2", tier="exotic"))
def test_weights_that_are_loaded_before_the_first_step_count(subject: Subject, judge: Judge, stage: str) -> None:
    judge_plans(subject, judge, stage, 2, _plans(plan_of("mlp", 2), SGD), way="loaded_late")


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="contract"))
def test_evaluation_between_steps_changes_nothing(subject: Subject, judge: Judge, stage: str) -> None:
    judge_plans(subject, judge, stage, 2, _plans(plan_of("mlp", 2), SGD, ADAM, evaluates=True))


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_layer_that_no_rank_uses_stays_as_it_is(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    judge_plans(subject, judge, stage, world_size, _plans(plan_of("unused", world_size), SGD, ADAM))


@pytest.mark.parametrize("stage", stages("1", "2", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_rank_that_does_not_use_a_layer_counts_as_zero(
    subject: Subject, judge: Judge, stage: str, world_size: int
) -> None:
    active = [[(rank + step) % 2 == 0 for rank in range(world_size)] for step in range(4)]
    judge_plans(subject, judge, stage, world_size, _plans(plan_of("optional", world_size), SGD, ADAM, active=active))
