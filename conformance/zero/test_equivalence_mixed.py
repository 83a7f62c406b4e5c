"""Mixed precision: 16-bit parameters, and what FP32 would make of them. Every gradient is exact in 16 bits."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from conformance.checks import Judge, Subject
from conformance.loop.programs import Batches
from conformance.zero import single
from conformance.zero.equivalence import judge_plans, stages
from conformance.zero.plan import Plan, rows_for_layers

UNIT = 2.0**-8  # of gradients: 65536, the largest usual loss scale, times a few of them is a number of float16
SHAPES = [[3, 2], [7], [1]]
ODD = [*SHAPES, [7]]
HALVES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
MOMENTUM = {"lr": 16.0, "momentum": 0.5}  # a step moves weights by sixteenths
SMALL = {torch.bfloat16: 2.0**-12, torch.float16: 2.0**-15}  # an eighth of what is lost next to 1.0
MANY = 32  # steps
TINY = 2.0**-26  # of gradients: float16 has it only under a loss scale
BARELY = 2.0**-10  # a weight this small shows far smaller differences than one near 1


def _plan(dtype: torch.dtype, data: Batches, **changes: Any) -> Plan:
    return Plan(data=data, shapes=SHAPES, real=False, dtype=dtype, loss="weighted", **changes)


@functools.cache
def plans_of(dtype: torch.dtype, world_size: int) -> list[Plan]:
    """A few steps with integers."""
    integers = _plan(dtype, rows_for_layers(SHAPES, world_size, steps=5, unit=UNIT))
    adam = {"lr": 0.125, "weight_decay": 0.25}
    return [
        dataclasses.replace(integers, is_exact=True, options=MOMENTUM),
        dataclasses.replace(integers, optimizer="Adam", options=adam),
        dataclasses.replace(integers, optimizer="AdamW", options=adam),
    ]


def steady(world_size: int, gradients: Sequence[float]) -> Batches:
    """The mean gradient of each step, the same for all elements; it is all on rank 0."""
    width = sum(torch.Size(shape).numel() for shape in SHAPES)
    ones = torch.ones(1, 1)
    return [
        [[(torch.full((1, width), gradient * world_size * (rank == 0)), ones)] for rank in range(world_size)]
        for gradient in gradients
    ]


def _rounded(values: single.Weights, dtype: torch.dtype) -> torch.Tensor:
    return torch.cat([value.reshape(-1) for value in values.values()]).to(dtype)


@pytest.mark.parametrize("stage", stages("mixed"))
@pytest.mark.parametrize("world_size", [2, 3])
@HALVES
def test_weights_are_the_rounded_ones_of_fp32_training(
    subject: Subject, judge: Judge, stage: str, dtype: torch.dtype, world_size: int
) -> None:
    judge_plans(subject, judge, stage, world_size, plans_of(dtype, world_size))


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@HALVES
def test_updates_too_small_for_16_bits_add_up(subject: Subject, judge: Judge, stage: str, dtype: torch.dtype) -> None:
    plan = _plan(dtype, steady(2, [UNIT] * MANY), is_exact=True, options={"lr": SMALL[dtype] / UNIT})
    run = single.train(plan)
    assert torch.equal(_rounded(run.steps[0], dtype), _rounded(run.start, dtype)), "one update is not too small"
    assert not torch.equal(_rounded(run.steps[-1], dtype), _rounded(run.start, dtype)), "they do not add up to anything"
    judge_plans(subject, judge, stage, 2, [plan])


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@HALVES
def test_moments_have_more_than_16_bits(subject: Subject, judge: Judge, stage: str, dtype: torch.dtype) -> None:
    # Velocities 1, 1/2 + 2**-12, -1/2 + 2**-13: in 16 bits the small part is lost. A weight of 1 ends with that part.
    momentum = _plan(
        dtype,
        steady(2, [UNIT * g for g in (1.0, 2.0**-12, -0.75)]),
        is_exact=True,
        options={**MOMENTUM, "lr": 1 / UNIT},
    )
    # The ratio of moments is 1, if they are right, so that a weight of 1 ends at 0.
    adam = _plan(dtype, steady(2, [UNIT] * 4), optimizer="Adam", options={"lr": 0.25})
    for plan in (momentum, adam):
        last = _rounded(single.train(plan).steps[-1], torch.float64)
        assert bool((last.abs() < BARELY).any()), f"no weight of {plan.called} ends near 0, where a small error shows"
    judge_plans(subject, judge, stage, 2, [momentum, adam])


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@HALVES
def test_without_masters_every_step_is_rounded(subject: Subject, judge: Judge, stage: str, dtype: torch.dtype) -> None:
    kept = dataclasses.replace(plans_of(dtype, 2)[0], options={**MOMENTUM, "lr": 1.0})  # finer than 11 bits
    plan = dataclasses.replace(kept, extras={"master": False})
    difference = single.apart(single.train(plan).steps[-1], single.train(kept).steps[-1])
    assert difference > 0, "masters make no difference"
    judge_plans(subject, judge, stage, 2, [plan])


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@HALVES
def test_mixed_precision_accumulates_follows_schedules_and_clips(
    subject: Subject, judge: Judge, stage: str, dtype: torch.dtype
) -> None:
    plan, _, adamw = plans_of(dtype, 2)
    norm = min(single.train(plan).norms) / 4
    plans = [
        dataclasses.replace(plan, data=rows_for_layers(SHAPES, 2, steps=3, micro=2, unit=UNIT)),
        dataclasses.replace(plan, rates=[16.0, 4.0, 32.0, 8.0, 16.0]),
        dataclasses.replace(plan, changes=[{"momentum": value} for value in (0.5, 0.25, 0.5, 0.25, 0.5)]),
        dataclasses.replace(adamw, changes=[{"weight_decay": value} for value in (0.25, 0.5, 0.0, 1.0, 0.25)]),
        dataclasses.replace(plan, is_exact=False, max_norm=norm),
    ]
    judge_plans(subject, judge, stage, 2, plans)


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@HALVES
def test_mixed_precision_takes_parameter_groups(subject: Subject, judge: Judge, stage: str, dtype: torch.dtype) -> None:
    momentum, _, adamw = plans_of(dtype, 2)
    rates = [["0.weight", {"lr": 8.0}, 0], ["", {"momentum": 0.25}, 0]]
    decays = [["0.weight", {"weight_decay": 0.5}, 0], ["", {}, 0]]
    plans = [dataclasses.replace(momentum, groups=rates), dataclasses.replace(adamw, groups=decays)]
    judge_plans(subject, judge, stage, 2, plans)


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
def test_gradients_too_small_for_float16_get_through(subject: Subject, judge: Judge, stage: str) -> None:
    assert torch.tensor(TINY).half() == 0
    data = rows_for_layers(SHAPES, 2, steps=3, unit=TINY)
    judge_plans(subject, judge, stage, 2, [_plan(torch.float16, data, is_exact=True, options={"lr": 2.0**-4 / TINY})])


@pytest.mark.parametrize("stage", stages("mixed", tier="exotic"))
@HALVES
def test_a_16_bit_layer_that_no_rank_uses_does_not_decay(
    subject: Subject, judge: Judge, stage: str, dtype: torch.dtype
) -> None:
    plans = [dataclasses.replace(plan, unused=[1]) for plan in plans_of(dtype, 2)[1:]]
    judge_plans(subject, judge, stage, 2, plans)


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@HALVES
def test_frozen_and_tied_16_bit_parameters(subject: Subject, judge: Judge, stage: str, dtype: torch.dtype) -> None:
    plans = [
        dataclasses.replace(plan, data=rows_for_layers(ODD, 2, steps=4, unit=UNIT), shapes=ODD, **changes)
        for plan in plans_of(dtype, 2)[::2]
        for changes in ({"frozen": [False, True, False, False]}, {"tied": [[1, 3]]})
    ]
    judge_plans(subject, judge, stage, 2, plans)


@pytest.mark.parametrize("stage", stages("mixed", tier="exotic"))
@HALVES
def test_wide_parameters_among_16_bit_ones(subject: Subject, judge: Judge, stage: str, dtype: torch.dtype) -> None:
    plans = [dataclasses.replace(plan, wide=[1]) for plan in plans_of(dtype, 2)]
    judge_plans(subject, judge, stage, 2, plans, perhaps=f"FP32 parameters among those in {dtype}")


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@pytest.mark.parametrize("world_size", [2])
def test_steps_that_overflow_leave_no_trace(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    judge_plans(subject, judge, stage, world_size, plans_of(torch.float16, world_size), way="with_overflows", at=2)


@pytest.mark.parametrize("stage", stages("mixed", tier="exotic"))
@HALVES
def test_a_saved_state_has_the_options_of_its_groups(
    subject: Subject, judge: Judge, stage: str, dtype: torch.dtype
) -> None:
    judge_plans(subject, judge, stage, 2, plans_of(dtype, 2), way="resumed_with_its_options", at=3)


@pytest.mark.parametrize("stage", stages("mixed", tier="exotic"))
@HALVES
def test_weights_that_are_loaded_before_the_first_step_count(
    subject: Subject, judge: Judge, stage: str, dtype: torch.dtype
) -> None:
    judge_plans(subject, judge, stage, 2, plans_of(dtype, 2)[:1], way="loaded_late")


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@HALVES
def test_mixed_precision_forgets_gradients(subject: Subject, judge: Judge, stage: str, dtype: torch.dtype) -> None:
    judge_plans(subject, judge, stage, 2, plans_of(dtype, 2)[:2], way="after_a_false_start")


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@HALVES
def test_mixed_precision_goes_on_from_a_saved_state(
    subject: Subject, judge: Judge, stage: str, dtype: torch.dtype
) -> None:
    small = _plan(dtype, steady(2, [UNIT] * MANY), is_exact=True, options={"lr": SMALL[dtype] / UNIT})
    judge_plans(subject, judge, stage, 2, [*plans_of(dtype, 2), small], way="saved_and_resumed", at=3)
