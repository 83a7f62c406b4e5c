"""Bytes per parameter: Adam's moments, plain mixed precision, and ZeRO-1 on top of it."""

from __future__ import annotations

import pytest
import torch

from conformance.checks import Judge, Subject, claim
from conformance.expect import same
from conformance.memory.weights import (
    GB,
    SLACK,
    SMALL_SLACK,
    UNIT,
    at_size,
    close,
    judge_parts,
    mean,
    nominal,
    on_ranks,
)
from conformance.verdict import Witness
from fixtures.shapes import LLAMA_2_7B, LLAMA_3_70B
from fixtures.weighing import PLAIN, Recipe
from impls.reference.memory import MIXED_WITH_MASTER, bytes_per_parameter, saving

BF16 = torch.bfloat16
MOMENTS = 8  # bytes per parameter: m and v in FP32
MASTER = 4
MIXED = Recipe(stage="mixed", dtype=BF16, master=True)
ZERO1 = Recipe(stage="1", dtype=BF16)
LARGEST_TENSOR = 0.045  # of 5.5P: 12 bytes for each element of the embedding of 7B, where whole tensors are dealt out


# -- Adam --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("1", marks=claim("memory.adam-states", provides=["ShardedOptimizer"])),
        pytest.param("2", marks=claim("memory.adam-states", provides=["Zero2Optimizer"])),
        pytest.param("3", marks=claim("memory.adam-states", provides=["fully_shard"])),
        pytest.param("mixed", marks=claim("memory.adam-states", provides=["MixedPrecision"])),
    ],
)
def test_adam_holds_8_bytes_per_parameter_over_all_ranks(subject: Subject, judge: Judge, stage: str) -> None:
    world_size = 1 if stage == "mixed" else 2
    dtype = BF16 if stage == "mixed" else torch.float32
    with_adam, without = (
        world_size * mean(on_ranks(subject, world_size, Recipe(stage=stage, dtype=dtype, optimizer=name)), "optimizer")
        for name in ("Adam", "SGD")
    )
    moments = with_adam - without
    if with_adam == without:  # it takes no optimizer_cls: its own has the moments, and a master copy perhaps
        moments = with_adam - MASTER if with_adam >= MOMENTS + MASTER else with_adam
    plain = mean(on_ranks(subject, 1, Recipe(stage=PLAIN, optimizer="Adam")), "optimizer")
    for what, held in {"torch.optim.Adam": plain, "what Adam holds here and SGD does not": moments}.items():
        judge.that(close(held, MOMENTS, SMALL_SLACK), witness=Witness.MEMORY, unit=UNIT, message=what)
    judge.that(
        close(moments * LLAMA_3_70B.nominal / GB, 560, SMALL_SLACK),
        witness=Witness.MEMORY,
        unit="GB",
        message=f"{moments:.3g} bytes over all ranks, times {nominal(LLAMA_3_70B)}",
    )


# -- mixed precision ---------------------------------------------------------------------------------------------------


@claim("memory.mixed-16p", provides=["MixedPrecision"])
def test_plain_mixed_precision_holds_16_bytes_per_parameter_on_every_rank(subject: Subject, judge: Judge) -> None:
    expected = bytes_per_parameter("ddp", 1, MIXED_WITH_MASTER)
    for world_size in (1, 2):
        for rank, weight in enumerate(on_ranks(subject, world_size, MIXED)):
            judge_parts(judge, [weight], expected, f"rank {rank} of {world_size}")
    for weight in at_size(subject, judge, (LLAMA_2_7B.with_layers(4), MIXED, 8)):
        judge_parts(judge, [weight], expected, f"4 layers of {LLAMA_2_7B.name}", slack=SLACK)
    accounting = MIXED_WITH_MASTER
    parts = (accounting.parameter, accounting.gradient, accounting.master, accounting.moments)
    judge.that(
        same(f"{accounting.total}P = {' + '.join(f'{part}P' for part in parts)}", "16P = 2P + 2P + 4P + 8P"),
        witness=Witness.MODEL,
        message="parameters, gradients, FP32 master copy, m and v",
    )


# -- ZeRO-1 ------------------------------------------------------------------------------------------------------------


@claim("memory.zero1-5.5p", provides=["ShardedOptimizer"])
def test_zero1_divides_12_of_16_bytes_by_the_number_of_ranks(subject: Subject, judge: Judge) -> None:
    alone = on_ranks(subject, 1, ZERO1)
    if close(mean(alone, "optimizer"), MOMENTS / 2, SMALL_SLACK).matches:
        judge.not_provided(
            f"{subject.name} keeps Adam's moments of 16-bit parameters in 16 bits and makes no FP32 copy: on one rank "
            f"it holds {mean(alone, 'states'):.3g}P, and this figure is about 16P"
        )
    moments = mean(alone, "fp32_optimizer")
    if close(mean(alone, "optimizer"), moments, SMALL_SLACK).matches and close(moments, MOMENTS, SMALL_SLACK).matches:
        judge.not_provided(
            f"{subject.name} keeps FP32 moments of 16-bit parameters and no FP32 copy of them: on one rank it holds "
            f"{mean(alone, 'states'):.3g}P, and this figure is about 16P"
        )
    for world_size in (1, 2, 4):
        weights = alone if world_size == 1 else on_ranks(subject, world_size, ZERO1)
        expected = bytes_per_parameter("1", world_size, MIXED_WITH_MASTER)
        buckets = 2 + MASTER / world_size  # a flat copy of the gradients, and the shard of it in FP32
        judge_parts(judge, weights, expected, f"N = {world_size}", beside=buckets)
    at_8 = float(bytes_per_parameter("1", 8, MIXED_WITH_MASTER).total)
    saved = float(1 - 1 / saving("1", 8, MIXED_WITH_MASTER))
    judge.that(
        same(f"{at_8:g}P, {saved:.1%} less than {MIXED_WITH_MASTER.total}P", "5.5P, 65.6% less than 16P"),
        witness=Witness.MODEL,
        message="4P + 12P/N at N = 8",
    )
    for weight in at_size(subject, judge, (LLAMA_2_7B, ZERO1, 8)):
        held = weight.per_parameter("states")
        judge.that(
            close(held, at_8, LARGEST_TENSOR),
            witness=Witness.MEMORY,
            unit=UNIT,
            message=f"{LLAMA_2_7B.name}, rank 0 of 8: {held * LLAMA_2_7B.nominal / GB:.4g} GB at {nominal(LLAMA_2_7B)}",
        )
