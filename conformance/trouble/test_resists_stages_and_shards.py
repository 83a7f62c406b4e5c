"""A pipeline and a mesh where every send waits for its receiver, and a fully sharded model of 70B: do they resist?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import nn

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.collectives import mesh_programs
from conformance.loop.judging import Named, judge_all
from conformance.loop.programs import Values, gradients
from conformance.memory.weights import at_size, close, mean, on_ranks
from conformance.trouble import resist_programs as programs
from conformance.verdict import Witness
from fixtures.faults.fsdp_70b_over_80gb import DEVICE_BYTES, GB, LAYERS, RECIPES
from fixtures.shapes import LLAMA_3_70B
from fixtures.weighing import STATES, Recipe, Weight

# -- pipeline-send-send ------------------------------------------------------------------------------------------------


def _expected_gradients(world_size: int, num_microbatches: int) -> list[Values]:
    stages = nn.Sequential(*(programs.stage_of(number) for number in range(world_size)))
    for x, target in programs.pipeline_data(num_microbatches):
        (nn.functional.mse_loss(stages(x), target) / num_microbatches).backward()  # type: ignore[no-untyped-call]
    return [gradients(stage) for stage in stages]


@claim("resists.pipeline-send-send", tier="contract", provides=["train_step"])
@pytest.mark.parametrize("world_size", [2, 3, 4, 5])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_a_pipeline_of_any_length_comes_to_an_end(
    subject: Subject, judge: Judge, schedule: str, world_size: int
) -> None:
    num_microbatches = 2 * world_size  # longer than the pipeline: neighbours send forward and backward at once
    outcomes = subject.run(programs.pipeline_step, world_size, schedule, num_microbatches)
    rows: list[Named] = []
    for rank, wanted in enumerate(_expected_gradients(world_size, num_microbatches)):
        for name, value in wanted.items():
            got = outcomes.values[rank][name]
            assert value is not None
            rows.append((f"rank {rank}, {name}", _arrived(got, value)))
    judge_all(judge, rows, f"gradients of {num_microbatches} microbatches through {world_size} stages by {schedule}")


def _arrived(got: Any, wanted: torch.Tensor) -> expect.Comparison:
    """Coarse: whether every microbatch came through. How exactly is pipeline.equivalence's question."""
    if got is None:
        return expect.same("no gradient", "a gradient")
    return expect.within(got, wanted, 0.02 * max(1.0, float(wanted.abs().max())))


@claim("resists.pipeline-send-send", tier="contract", provides=["queue_mesh"])
@pytest.mark.parametrize("world_size", [2, 3, 4, 5])
def test_neighbours_who_all_send_first_do_not_lock_over_a_mesh(subject: Subject, judge: Judge, world_size: int) -> None:
    rounds = 3
    report = subject.run(mesh_programs.all_send_first, 1, world_size, rounds).values[0]
    if report["errors"]:
        judge.crashes(f"neighbours who all send first: {report['errors']}")
    if report["stuck"]:
        waiting = ", ".join(map(str, report["stuck"]))
        judge.hangs(f"neighbours who all send first: threads {waiting} of {world_size} still wait: send() is no buffer")
    wanted = {
        rank: [float(10 * number + (rank - 1) % world_size) for number in range(rounds)] for rank in range(world_size)
    }
    judge.expect(report["results"], wanted, message=f"letters from the left, {rounds} rounds on {world_size} ranks")


# -- fsdp-70b-over-80gb ------------------------------------------------------------------------------------------------

PADDING = 0.02  # rows that do not divide by N, and the tail of a flat parameter
ENOUGH = 16


@claim("resists.fsdp-70b-over-80gb", tier="contract", provides=["fully_shard"])
def test_a_rank_holds_its_share_and_sixteen_are_enough_for_70b(subject: Subject, judge: Judge) -> None:
    mixed = subject.has("MixedPrecision")  # else FP32 throughout, in which the shards are a master copy themselves
    for recipe in RECIPES.values() if mixed else [Recipe(stage="3")]:
        two, four = (on_ranks(subject, world_size, recipe) for world_size in (2, 4))
        whole = _judge_shares(judge, {2: mean(two, "total"), 4: mean(four, "total")}, "a small model on real ranks")
        _judge_fits(judge, whole / ENOUGH, "by what real ranks hold of each parameter of a small one")
        weights = at_size(subject, judge, *((LAYERS, recipe, world_size) for world_size in (8, ENOUGH)))
        if weights:
            _judge_shares(judge, {w.world_size: w.per_parameter() for w in weights}, f"layers of {LLAMA_3_70B.name}")
            _judge_fits(judge, weights[-1].per_parameter(), _told(weights[-1]))


def _judge_shares(judge: Judge, held: Mapping[int, float], what: str) -> float:
    """``held[N]`` bytes per parameter are 1/N of one whole, whatever an implementation counts into that; the whole."""
    (few, with_few), (many, with_many) = held.items()
    judge.that(
        close(with_many * many, with_few * few, PADDING),
        witness=Witness.MEMORY,
        unit="bytes per parameter, all ranks together",
        message=f"{what}: {many} ranks against {few}, where one holds {with_many:.4g} and {with_few:.4g}",
    )
    return with_many * many


def _judge_fits(judge: Judge, per_parameter: float, what: str) -> None:
    judge.at_most(
        per_parameter * LLAMA_3_70B.nominal / GB,
        DEVICE_BYTES / GB,
        witness=Witness.MEMORY,
        unit="GB",
        message=f"{LLAMA_3_70B.nominal / GB:g}e9 parameters, one of {ENOUGH} ranks, {what}",
    )


def _told(weight: Weight) -> str:
    parts = {name: weight.per_parameter(name) * LLAMA_3_70B.nominal / GB for name in (*STATES, "other")}
    return ", ".join(f"{name} {size:.1f}" for name, size in parts.items())
