"""PyTorch's sharded blocks behind their adapters, on real ranks, against training in one process."""

from __future__ import annotations

import pytest
import torch

from fixtures.world.pool import WorldPool
from impls.contract import ENTRIES
from impls.loading import load
from tests.impls import torch_zero_programs as programs

STEPS = 4
LATER = [2, 3]  # the steps that are made after a restart
# Float32 gradients of order one summed in another order; Adam divides what they differ by by its eps of 1e-2.
ROUNDING = 1e-4
MODELS = ["mlp", "tied", "frozen", "shared", "uneven", "buffers", "unused"]
SIZES = [1, 2, 3]


def _assert_close(got: programs.Weights, expected: programs.Weights) -> None:
    assert set(got) == set(expected)
    for name, value in expected.items():
        assert torch.allclose(got[name], value, rtol=0, atol=ROUNDING), name


def test_torch_offers_two_sharded_blocks() -> None:
    impl = load("torch")
    assert impl.provides("sharded_optimizer")
    assert impl.provides("fully_shard")
    assert {"ShardedOptimizer", "fully_shard"} <= set(ENTRIES)


# -- ShardedOptimizer --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world_size", SIZES)
@pytest.mark.parametrize("model", [*MODELS, "scalar"])
def test_zero_redundancy_trains_like_one_process(worlds: WorldPool, model: str, world_size: int) -> None:
    ranks = worlds.world(world_size).run(programs.zero, model, STEPS).values
    expected = programs.alone(model, world_size, STEPS)
    for got, _ in ranks:
        _assert_close(got, expected)
    everything = programs.zero_state_bytes(model)
    assert sum(state_bytes for _, state_bytes in ranks) == everything
    most = max(state_bytes for _, state_bytes in ranks)
    assert (most < everything) == (world_size > 1 and model != "frozen")  # only one parameter of that one learns


def test_zero_redundancy_clips_by_the_norm_of_the_mean_gradient(worlds: WorldPool) -> None:
    expected = programs.alone("mlp", 3, STEPS, max_norm=0.1)
    for got, _ in worlds.world(3).run(programs.zero, "mlp", STEPS, max_norm=0.1).values:
        _assert_close(got, expected)


@pytest.mark.parametrize("world_size", [2, 3])
def test_zero_redundancy_resumes_on_any_number_of_ranks(worlds: WorldPool, world_size: int) -> None:
    held, state = worlds.world(3).run(programs.zero_saved, "mlp", 2).values[1]
    expected = programs.alone("mlp", 3, STEPS)
    resumed = worlds.world(world_size).run(programs.zero_resumed, "mlp", held, state, LATER)
    for got in resumed.values:
        _assert_close(got, expected)


def test_a_rank_without_gradient_counts_as_zero(worlds: WorldPool) -> None:
    for used, unused in worlds.world(2).run(programs.zero_used_by_rank_0_only).values:
        assert torch.equal(used, torch.full((1, 2), -0.5))
        assert unused is None


# -- fully_shard -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world_size", SIZES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("reshard", [True, False])
def test_fully_shard_trains_like_one_process(worlds: WorldPool, model: str, world_size: int, reshard: bool) -> None:
    expected = programs.alone(model, world_size, STEPS)
    for got in worlds.world(world_size).run(programs.fsdp2, model, STEPS, reshard).values:
        _assert_close(got, expected)


def test_fully_shard_clips_by_the_norm_of_the_mean_gradient(worlds: WorldPool) -> None:
    expected = programs.alone("mlp", 3, STEPS, max_norm=0.1)
    for got in worlds.world(3).run(programs.fsdp2, "mlp", STEPS, True, max_norm=0.1).values:
        _assert_close(got, expected)
    for norm in worlds.world(3).run(programs.fsdp2_norm, "mlp").values:
        assert norm == pytest.approx(programs.norm_alone("mlp", 3), rel=1e-5)


@pytest.mark.parametrize("world_size", [2, 3])
def test_fully_shard_resumes_on_any_number_of_ranks(worlds: WorldPool, world_size: int) -> None:
    state = worlds.world(3).run(programs.fsdp2_saved, "mlp", 2).values[1]
    expected = programs.alone("mlp", 3, STEPS)
    for got in worlds.world(world_size).run(programs.fsdp2_resumed, "mlp", state, LATER).values:
        _assert_close(got, expected)


def test_fully_shard_in_groups(worlds: WorldPool) -> None:
    expected = programs.alone("mlp", 2, STEPS)
    for got in worlds.world(4).run(programs.fsdp2_in_pairs, "mlp", STEPS).values:
        _assert_close(got, expected)


def test_no_sync_accumulates_without_reducing(worlds: WorldPool) -> None:
    for outcome in worlds.world(2).run(programs.fsdp2_accumulated, "mlp"):
        in_parts, at_once = outcome.value
        _assert_close(in_parts, at_once)
        begin, end = (mark.at_ns for mark in outcome.marks if mark.name.startswith("inside-"))
        assert not [op for op in outcome.operations if op.kind == "reduce_scatter" and begin < op.issued_ns < end]


@pytest.mark.parametrize("strategy", ["NO_SHARD", "SHARD_GRAD_OP", "FULL_SHARD"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_fsdp1_trains_like_one_process(worlds: WorldPool, strategy: str, world_size: int) -> None:
    expected = programs.alone("mlp", world_size, STEPS)
    for got in worlds.world(world_size).run(programs.fsdp1_trained, "mlp", strategy, STEPS).values:
        _assert_close(got, expected)
