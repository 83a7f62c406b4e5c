"""What is done with a fully sharded module besides: checkpointing, groups, 16 bits, keeping parameters, saving all."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest
import torch

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.loop.judging import Named, judge_all
from conformance.loop.single import batches
from conformance.zero import fsdp_programs, single
from conformance.zero.equivalence import judge_plans, judge_trained, stages, trained
from conformance.zero.plan import Plan, rows_for_layers
from fixtures import models
from fixtures.world.per_rank import PerRank

SGD: dict[str, Any] = {"optimizer": "SGD", "options": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}}
ADAMW: dict[str, Any] = {"optimizer": "AdamW", "options": {"lr": 0.05, "weight_decay": 0.1}}
SHAPES = [[3, 2], [7], [1], [2, 5]]
FEW = [[1], [1]]
KEPT = {"reshard_after_forward": False}
BY_NAME = [["", {}, 0]]  # one group; where a layer's pieces are no parameters of their own, it cannot be left out
UNIT = 2.0**-8  # of gradients under a loss scale: 65536 times a few of them is a number of float16
HALVES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
AT = 2


@functools.cache
def plans_of(model: str, world_size: int, *, micro: int = 1) -> list[Plan]:
    """Real numbers, and rules that move on by themselves: by decay, and by momentum."""
    data = batches(37, world_size, steps=4, micro=micro, real=True)
    return [Plan(data=data, model=model, **rule) for rule in (SGD, ADAMW)]


def _layers(world_size: int, dtype: torch.dtype | None = None, **changes: Any) -> Plan:
    """Two steps with integers, few enough for 16 bits."""
    data = rows_for_layers(SHAPES, world_size, steps=2)
    plan = Plan(data=data, shapes=SHAPES, real=False, is_exact=True, dtype=dtype, loss="weighted", options={"lr": 0.25})
    return dataclasses.replace(plan, **changes)


@pytest.mark.parametrize("stage", stages("3", tier="exotic"))
def test_checkpointed_blocks_are_computed_again(subject: Subject, judge: Judge, stage: str) -> None:
    judge_plans(subject, judge, stage, 2, plans_of("checkpointed", 2), perhaps="blocks under activation checkpointing")


@pytest.mark.parametrize("stage", stages("3", tier="exotic"))
@pytest.mark.parametrize("world_size", [3])
def test_one_backward_after_two_forwards(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    judge_plans(subject, judge, stage, world_size, plans_of("mlp", world_size, micro=2), way="with_one_backward")


@pytest.mark.parametrize("stage", stages("3", tier="contract"))
@pytest.mark.parametrize("world_size", [4])
def test_parameters_kept_after_forward_train_alike(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    freed = [_layers(world_size), *plans_of("mlp", world_size), *plans_of("shared", world_size, micro=2)]
    judge_plans(
        subject, judge, stage, world_size, [*freed, *(dataclasses.replace(plan, extras=KEPT) for plan in freed)]
    )


@pytest.mark.parametrize("stage", stages("3", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_layer_that_no_rank_uses_does_not_decay(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    plans = [dataclasses.replace(plan, groups=BY_NAME) for plan in plans_of("unused", world_size)]
    judge_plans(subject, judge, stage, world_size, plans)


@pytest.mark.parametrize("stage", stages("3", tier="contract"))
@HALVES
def test_16_bit_shards_are_trained(subject: Subject, judge: Judge, stage: str, dtype: torch.dtype) -> None:
    plan = _layers(3, dtype)
    for values in single.train(plan).steps:
        assert all(torch.equal(value.to(dtype).double(), value) for value in values.values()), "16 bits have to round"
    judge_plans(subject, judge, stage, 3, [plan], perhaps=f"parameters in {dtype}")


@pytest.mark.parametrize("stage", stages("3", tier="contract"))
def test_groups_of_ranks_train_by_themselves(subject: Subject, judge: Judge, stage: str) -> None:
    plan = plans_of("uneven", 4)[0]
    reports = subject.run(fsdp_programs.in_halves, 4, stage, plan.parts(4)).values
    if "missing" in reports[0]:
        judge.not_provided(reports[0]["missing"])
    halves = [slice(2), slice(2, None)]
    plans = [dataclasses.replace(plan, data=[by_rank[half] for by_rank in plan.data]) for half in halves]
    pairs = zip(plans, halves, strict=True)
    judge_trained(judge, [trained(subject, stage, own, reports[half]) for own, half in pairs])


@claim("zero.equivalence", tier="contract", provides=["fully_shard"])
@pytest.mark.parametrize("training", [True, False])
def test_sharded_module_is_called_as_it_was(subject: Subject, judge: Judge, training: bool) -> None:
    rows, shifts = (PerRank([models.rows(2, at + rank) for rank in range(2)]) for at in (60, 70))
    reports = subject.run(fsdp_programs.called, 2, 5, rows, shifts, training=training).values
    if "missing" in reports[0]:
        judge.not_provided(reports[0]["missing"])
    found = [
        (f"rank {rank}, {what}", expect.same(report["sharded"][what], value))
        for rank, report in enumerate(reports)
        for what, value in report["bare"].items()
    ]
    mode = "training" if training else "evaluation"
    judge_all(judge, found, f"a sharded module in {mode} mode against the bare one, with all arguments that it takes")


@claim("zero.equivalence", tier="contract", provides=["fully_shard"])
@pytest.mark.parametrize("model", ["uneven", "frozen"])
def test_parameters_given_out_are_those_computed_with(subject: Subject, judge: Judge, model: str) -> None:
    plan = plans_of(model, 2)[0]
    reports = subject.run(fsdp_programs.told, 2, plan.parts(2), AT).values
    if not reports[0]["told"][0]:
        judge.not_provided(f"{subject.name} has no full_parameters()")
    found: list[Named] = []
    for rank, report in enumerate(reports):
        for when, told, used in zip((AT, len(plan.data)), report["told"], report["used"], strict=True):
            where = f"rank {rank}, after step {when}"
            for name, _ in plan.build().named_parameters():
                found.append((f"{where}, {name}", expect.same(told.get(name), used[name])))
    judge_all(judge, found, "full_parameters() against what the layers' forward passes are computed with")


@claim("zero.equivalence", tier="contract", provides=["fully_shard"])
@pytest.mark.parametrize("model", ["frozen", "buffers"])
def test_a_full_state_is_all_of_it(subject: Subject, judge: Judge, model: str) -> None:
    for plan in plans_of(model, 2):
        first, then = plan.part(slice(AT)), plan.part(slice(AT, None))
        saved = subject.run(fsdp_programs.save, 2, first.parts(2)).values[0]
        if "missing" in saved:
            judge.not_provided(saved["missing"])
        went_on = subject.run(fsdp_programs.resume, 2, then.parts(2), saved["saved"]).values
        judge_trained(judge, [trained(subject, "3", plan, went_on)])
        buffers = [
            (f"rank {rank}", expect.same(found["buffers"], saved["buffers"])) for rank, found in enumerate(went_on)
        ]
        judge_all(judge, buffers, "the buffers that load_full_state() leaves, against those that full_state() found")


@claim("zero.equivalence", tier="exotic", provides=["fully_shard", "MixedPrecision"])
@HALVES
def test_mixed_precision_updates_shards(subject: Subject, judge: Judge, dtype: torch.dtype) -> None:
    momentum = {"lr": 16.0, "momentum": 0.5}
    plan = Plan(
        data=rows_for_layers(SHAPES, 3, steps=4, unit=UNIT),
        shapes=SHAPES,
        real=False,
        is_exact=True,
        dtype=dtype,
        loss="weighted",
        options=momentum,
        on_shards=True,
    )
    clipped = dataclasses.replace(plan, is_exact=False, max_norm=min(single.train(plan).norms) / 4)
    few = dataclasses.replace(plan, data=rows_for_layers(FEW, 3, steps=4, unit=UNIT), shapes=FEW)
    adam = dataclasses.replace(plan, optimizer="AdamW", options={"lr": 0.125, "weight_decay": 0.25})
    judge_plans(subject, judge, "3", 3, [plan, few, adam, clipped])
