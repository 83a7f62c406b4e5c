"""Several steps of sharded training end where a single process ends, for the models that everyone must handle."""

from __future__ import annotations

import dataclasses
import functools

import pytest

from conformance.checks import Judge, Subject
from conformance.loop.single import batches
from conformance.zero.equivalence import judge_plans, stages
from conformance.zero.plan import Plan, rows_for_layers

EXACT = [{"lr": 0.25}, {"lr": 0.25, "momentum": 0.5}]  # powers of two
REAL = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.1}),
]
SHAPES = [[3, 2], [7], [1], [2, 5]]  # 24 elements and odd sizes


@functools.cache
def plans_of(model: str, world_size: int) -> list[Plan]:
    """Four steps of every optimizer; and one with integers, the next would have more bits than float32 has room."""
    integers = Plan(
        data=batches(3, world_size),
        model=model,
        real=False,
        is_exact=True,
        loss="weighted",
        scale=float(world_size),
        options=EXACT[0],
    )
    data = batches(17, world_size, steps=4, real=True)
    return [integers, *(Plan(data=data, model=model, optimizer=name, options=options) for name, options in REAL)]


@functools.cache
def plans_of_layers(world_size: int) -> list[Plan]:
    """Many steps whose gradients are integers whatever the weights are."""
    data = rows_for_layers(SHAPES, world_size, steps=5)
    layers = Plan(data=data, shapes=SHAPES, real=False, is_exact=True, loss="weighted")
    still = [[False] * 4, [False, True, False, False]]
    return [dataclasses.replace(layers, frozen=frozen, options=options) for options in EXACT for frozen in still]


@pytest.mark.parametrize("stage", stages("1", "2", "3"))
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("model", ["mlp", "uneven", "frozen", "tied", "shared"])
def test_training_is_that_of_a_single_process(
    subject: Subject, judge: Judge, stage: str, world_size: int, model: str
) -> None:
    judge_plans(subject, judge, stage, world_size, plans_of(model, world_size))


@pytest.mark.parametrize("stage", stages("1", "2", "3"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_many_steps_are_exact_where_gradients_are_integers(
    subject: Subject, judge: Judge, stage: str, world_size: int
) -> None:
    judge_plans(subject, judge, stage, world_size, plans_of_layers(world_size))
