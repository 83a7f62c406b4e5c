"""The reference's data parallelism on real ranks, against what one process computes alone."""

from __future__ import annotations

import pytest
import torch

from fixtures.world.pool import WorldPool
from tests.impls import programs

# Means of a few float32 gradients of order one, summed in another order than the single process sums them.
ROUNDING = 1e-6


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_construction_gives_every_rank_the_parameters_and_buffers_of_rank_0(worlds: WorldPool, world_size: int) -> None:
    first, *others = worlds.world(world_size).run(programs.replicas_after_construction).values
    assert all(all(map(torch.equal, first, other)) for other in others)


@pytest.mark.parametrize("bucket_cap_mb", [25.0, 0.0001, 0.0])
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_gradients_are_the_mean_over_ranks(worlds: WorldPool, world_size: int, bucket_cap_mb: float) -> None:
    for error, without_gradient in worlds.world(world_size).run(programs.one_step, bucket_cap_mb).values:
        assert error < ROUNDING
        assert {"never.weight", "never.bias", "frozen.weight"} <= set(without_gradient)
        assert "on_even.weight" not in without_gradient


def test_no_sync_accumulates_without_traffic_and_the_next_backward_reduces_all(worlds: WorldPool) -> None:
    for outcome in worlds.world(3).run(programs.accumulation):
        error, num_buckets = outcome.value
        assert error < 3 * ROUNDING
        last = next(mark for mark in outcome.marks if mark.name == "last")
        reductions = [op for op in outcome.operations if op.kind == "all_reduce"]
        assert len(reductions) == num_buckets == 2  # one for each dtype
        assert all(op.issued_ns > last.at_ns for op in reductions)


def test_several_forwards_before_one_backward(worlds: WorldPool) -> None:
    assert max(worlds.world(2).run(programs.two_forwards_one_backward).values) < ROUNDING


def test_a_rank_without_backward_takes_part_through_sync_grads(worlds: WorldPool) -> None:
    assert max(worlds.world(3).run(programs.rank_without_backward).values) < ROUNDING


def test_an_exception_in_backward_leaves_the_next_step_right(worlds: WorldPool) -> None:
    assert max(worlds.world(2).run(programs.backward_after_an_exception).values) < ROUNDING


def test_replicas_stay_the_same_bits_with_momentum_and_weight_decay(worlds: WorldPool) -> None:
    first, *others = worlds.world(3).run(programs.steps_with_momentum, 4).values
    assert all(all(map(torch.equal, first, other)) for other in others)


def test_full_buckets_set_out_before_backward_ends(worlds: WorldPool) -> None:
    for outcome in worlds.world(2).run(programs.marked_backward):
        first_layer = next(mark for mark in outcome.marks if mark.name == "first layer")
        reductions = [op.issued_ns < first_layer.at_ns for op in outcome.operations if op.kind == "all_reduce"]
        assert reductions == [True] * 4 + [False] * 2  # weight and bias of the last two of three layers


@pytest.mark.parametrize("average", [False, True])
def test_strided_gradients_are_reduced_and_their_gaps_left_alone(worlds: WorldPool, average: bool) -> None:
    for grad, memory in worlds.world(3).run(programs.strided_gradient, average).values:
        assert torch.equal(grad, torch.full((2, 3), 2.0 if average else 6.0))
        assert torch.equal(memory[:, 1::2], torch.full((2, 3), 9.0))


def test_sum_gradients_fills_gaps_with_zeros_and_keeps_none_where_nobody_has_one(worlds: WorldPool) -> None:
    for used, unused in worlds.world(3).run(programs.gradient_on_rank_0_only).values:
        assert torch.equal(used, torch.ones(1, 2))
        assert unused is None


def test_shards_of_the_gradient_sum_and_gathered_parameters_in_their_own_dtype(worlds: WorldPool) -> None:
    shards, gathered = zip(*worlds.world(3).run(programs.shard_and_gather).values, strict=True)
    assert torch.equal(torch.cat(shards), torch.arange(7.0) * 6)
    assert all(torch.equal(whole, torch.arange(3).repeat_interleave(3).bfloat16()) for whole in gathered)


@pytest.mark.parametrize("bare", [False, True])
def test_training_on_two_ranks_is_training_on_the_global_batch(worlds: WorldPool, bare: bool) -> None:
    alone = programs.train_alone(steps=5, batch_size=8)
    ranks = worlds.world(2, bare=bare).run(programs.train_linear, steps=5, batch_size=4, bare=bare).values
    assert all(map(torch.equal, *ranks))
    assert all(torch.allclose(one, other, atol=5 * ROUNDING) for one, other in zip(ranks[0], alone, strict=True))
