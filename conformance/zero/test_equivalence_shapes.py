"""Parameters of any shape and dtype, more ranks than elements, buffers: sharding has to leave them all as they are."""

from __future__ import annotations

import dataclasses
import functools

import pytest
import torch
from hypothesis import strategies as st

from conformance import expect
from conformance.checks import Judge, Subject
from conformance.loop.judging import judge_all
from conformance.loop.single import batches
from conformance.zero import value_programs
from conformance.zero.equivalence import judge_plans, stages
from conformance.zero.plan import Plan, rows_for_layers

MOMENTUM = {"lr": 0.25, "momentum": 0.5}  # powers of two
FEW = [[1], [2]]
MAX_EXAMPLES = 5  # each is a run of its own on every stage and number of ranks


@functools.cache
def plans_of(model: str, world_size: int, dtype: torch.dtype | None = None) -> list[Plan]:
    """Two steps with integers, and four of real numbers where the yardstick can compute the model in double."""
    integers = Plan(
        data=batches(3, world_size, steps=2),
        model=model,
        real=False,
        is_exact=True,
        dtype=dtype,
        loss="weighted",
        scale=float(world_size),
        options=MOMENTUM,
    )
    data = batches(31, world_size, steps=4, real=True)
    reals = Plan(data=data, model=model, dtype=dtype, optimizer="AdamW", options={"lr": 0.05})
    return [integers] if model == "mixed" else [integers, reals]


def layers(shapes: list[list[int]], world_size: int, frozen: list[bool]) -> Plan:
    """Three steps of drawn layers."""
    data = rows_for_layers(shapes, world_size, steps=3)
    return Plan(data=data, shapes=shapes, frozen=frozen, real=False, is_exact=True, loss="weighted", options=MOMENTUM)


@st.composite
def drawn(draw: st.DrawFn, world_size: int) -> list[Plan]:
    """Up to five layers, the first of which learns."""
    shapes = draw(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=1, max_size=5))
    rest = len(shapes) - 1
    return [layers(shapes, world_size, [False, *draw(st.lists(st.booleans(), min_size=rest, max_size=rest))])]


@pytest.mark.parametrize("stage", stages("1", "2", "3"))
@pytest.mark.parametrize("world_size", [3])
def test_fewer_elements_than_ranks_are_trained(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    judge_plans(subject, judge, stage, world_size, [layers([[1], [1]], world_size, [False, False])])


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_buffers_are_left_alone(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    plan = dataclasses.replace(plans_of("buffers", world_size)[0], is_exact=False)
    reports = subject.run(value_programs.buffers, world_size, stage, plan.parts(world_size)).values
    found = [(f"rank {rank}", expect.same(report["after"], report["wanted"])) for rank, report in enumerate(reports)]
    judge_all(judge, found, "buffers after training, against those of the module by itself on the rows of the rank")


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="exotic"))
@pytest.mark.parametrize("model", ["mixed", "scalar"])
def test_parameters_of_other_dtypes_and_shapes_are_trained(
    subject: Subject, judge: Judge, stage: str, model: str
) -> None:
    judge_plans(subject, judge, stage, 3, plans_of(model, 3))


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="exotic"))
def test_doubles_are_trained_as_doubles(subject: Subject, judge: Judge, stage: str) -> None:
    judge_plans(subject, judge, stage, 3, plans_of("mlp", 3, torch.float64))


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="exotic"))
@pytest.mark.parametrize("world_size", [1, 5, 8])
def test_any_number_of_ranks_trains_alike(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    few = layers(FEW, world_size, [False, False])
    judge_plans(subject, judge, stage, world_size, [few, *plans_of("mlp", world_size)])


@pytest.mark.parametrize("stage", stages("1", "2", "3", tier="exotic"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_layers_of_drawn_shapes_are_trained(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    judge.forall(
        drawn(world_size),
        lambda plans: judge_plans(subject, judge, stage, world_size, plans),
        max_examples=MAX_EXAMPLES,
    )
