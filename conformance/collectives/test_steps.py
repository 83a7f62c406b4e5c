"""How many steps each algorithm takes: messages of every rank, and the longest chain of them over all ranks."""

from __future__ import annotations

import math

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.collectives.costs import Count, count, judge_steps, log2_ceil, longest_chain
from conformance.verdict import Tier, Witness
from impls.words import number_of

NUMEL = 840  # a multiple of 1 to 8

core_sizes = pytest.mark.parametrize("world_size", [2, 3, 4])
large_sizes = pytest.mark.parametrize("world_size", [1, 5, 8])


@claim("collectives.ring.steps", provides=["ring_allreduce"])
@core_sizes
def test_a_ring_takes_2_n_minus_1_steps(subject: Subject, judge: Judge, world_size: int) -> None:
    counted = count(subject, judge, "ring_allreduce", world_size, NUMEL)
    judge_steps(judge, counted, "2(N-1)", 2 * (world_size - 1))


@claim("collectives.ring.steps", provides=["ring_allreduce"], tier=Tier.EXOTIC)
@large_sizes
def test_a_large_ring_takes_2_n_minus_1_steps(subject: Subject, judge: Judge, world_size: int) -> None:
    counted = count(subject, judge, "ring_allreduce", world_size, NUMEL + 1)  # N divides it for one rank only
    judge_steps(judge, counted, "2(N-1)", 2 * (world_size - 1))


def _judge_tree_steps(judge: Judge, counted: Count) -> None:
    """At most 2 ceil(log2 N); fewer than ceil(log2 N) cannot bring every rank's tensor to every other."""
    bound, least = 2 * log2_ceil(counted.world_size), log2_ceil(counted.world_size)
    printed = 2 * math.log2(counted.world_size)
    steps = longest_chain(judge, counted)
    if not least <= steps <= bound:
        judge.violated(
            f"the longest chain of messages on {number_of(counted.world_size, 'rank')} takes "
            f"{number_of(steps, 'step')}",
            expected=f"2 ceil(log2 N) = {bound}",
            observed=steps,
            witness=Witness.TRACE,
            unit="steps",
            outcomes=counted.outcomes,
        )
    unrounded = f"2 log2 {counted.world_size} = {printed:.2f}"
    rounding = "" if steps <= printed else f"; without rounding up, {unrounded} is too few"
    judge.holds(
        expected=f"2 ceil(log2 N) = {number_of(bound, 'step')} at most",
        observed=steps,
        witness=Witness.TRACE,
        unit="steps",
        message=f"the longest chain of messages on {number_of(counted.world_size, 'rank')} takes "
        f"{number_of(steps, 'step')}{rounding}",
        data={"unrounded_steps": printed, "steps": steps},
    )


@claim("collectives.tree.steps", provides=["tree_allreduce"])
@core_sizes
def test_a_tree_takes_2_log2_n_steps(subject: Subject, judge: Judge, world_size: int) -> None:
    _judge_tree_steps(judge, count(subject, judge, "tree_allreduce", world_size, NUMEL))


@claim("collectives.tree.steps", provides=["tree_allreduce"], tier=Tier.EXOTIC)
@large_sizes
def test_a_large_tree_takes_2_log2_n_steps(subject: Subject, judge: Judge, world_size: int) -> None:
    _judge_tree_steps(judge, count(subject, judge, "tree_allreduce", world_size, NUMEL))


@claim("collectives.allgather.steps", provides=["ring_allgather"])
@core_sizes
def test_a_gathering_ring_takes_n_minus_1_steps(subject: Subject, judge: Judge, world_size: int) -> None:
    judge_steps(judge, count(subject, judge, "ring_allgather", world_size, NUMEL), "N-1", world_size - 1)


@claim("collectives.allgather.steps", provides=["ring_allgather"], tier=Tier.EXOTIC)
@large_sizes
def test_a_large_gathering_ring_takes_n_minus_1_steps(subject: Subject, judge: Judge, world_size: int) -> None:
    judge_steps(judge, count(subject, judge, "ring_allgather", world_size, NUMEL), "N-1", world_size - 1)


@claim("collectives.reduce-scatter.steps", provides=["ring_reduce_scatter"])
@core_sizes
def test_a_scattering_ring_takes_n_minus_1_steps(subject: Subject, judge: Judge, world_size: int) -> None:
    judge_steps(judge, count(subject, judge, "ring_reduce_scatter", world_size, NUMEL), "N-1", world_size - 1)


@claim("collectives.reduce-scatter.steps", provides=["ring_reduce_scatter"], tier=Tier.EXOTIC)
@large_sizes
def test_a_large_scattering_ring_takes_n_minus_1_steps(subject: Subject, judge: Judge, world_size: int) -> None:
    judge_steps(judge, count(subject, judge, "ring_reduce_scatter", world_size, NUMEL + 1), "N-1", world_size - 1)
