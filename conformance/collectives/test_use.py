"""What each algorithm is for: a ring for large tensors, a tree for small ones, and the parts of a ring for ZeRO."""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.collectives.costs import count
from conformance.collectives.timing import Timed, crossover, ring_latencies, timed, tree_latencies
from conformance.verdict import Tier, Witness
from impls.words import number_of

FAR = 8.0  # times the crossover: there a message or two of bookkeeping decide nothing
large_sizes = pytest.mark.parametrize("world_size", [5, 8])


def _judge_faster(judge: Judge, own: Timed, size: float, other: str, other_s: float, *, faster: bool) -> None:
    """Whether the implementation's messages take less time than the other algorithm, or more."""
    mine = own.latencies(size)
    if (mine < other_s) != faster:
        judge.violated(
            f"{own.name} on {number_of(own.world_size, 'rank')}, T of {size:.2g} latencies x bandwidth: its "
            "messages take "
            f"{mine:.2f} latencies, a {other} takes {other_s:.2f}",
            expected=f"{'less' if faster else 'more'} than {other_s:.2f}",
            observed=f"{mine:.2f}",
            witness=Witness.SIMULATION,
            unit="latencies",
        )
    judge.holds(
        expected=f"{'less' if faster else 'more'} than the {other_s:.2f} of a {other}",
        observed=f"{mine:.2f}",
        witness=Witness.SIMULATION,
        unit="latencies",
        message=f"{number_of(own.world_size, 'rank')}, T of {size:.2g} latencies x bandwidth",
    )


def _ring(subject: Subject, judge: Judge, world_size: int) -> None:
    own = timed(judge, count(subject, judge, "ring_allreduce", world_size))
    if world_size <= 3:
        _judge_faster(judge, own, FAR, "tree", tree_latencies(world_size, FAR), faster=True)
        return
    large, small = crossover(world_size) * FAR, crossover(world_size) / FAR
    _judge_faster(judge, own, small, "tree", tree_latencies(world_size, small), faster=False)
    _judge_faster(judge, own, large, "tree", tree_latencies(world_size, large), faster=True)


def _tree(subject: Subject, judge: Judge, world_size: int) -> None:
    own = timed(judge, count(subject, judge, "tree_allreduce", world_size))
    small = crossover(world_size) / FAR
    _judge_faster(judge, own, small, "ring", ring_latencies(world_size, small), faster=True)


@claim("collectives.ring.use", provides=["ring_allreduce"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_a_ring_is_for_large_tensors(subject: Subject, judge: Judge, world_size: int) -> None:
    _ring(subject, judge, world_size)


@claim("collectives.ring.use", provides=["ring_allreduce"], tier=Tier.EXOTIC)
@large_sizes
def test_a_ring_over_many_ranks_is_for_large_tensors(subject: Subject, judge: Judge, world_size: int) -> None:
    _ring(subject, judge, world_size)


@claim("collectives.tree.use", provides=["tree_allreduce"])
def test_a_tree_is_for_small_tensors(subject: Subject, judge: Judge) -> None:
    _tree(subject, judge, 4)


@claim("collectives.tree.use", provides=["tree_allreduce"], tier=Tier.EXOTIC)
@large_sizes
def test_a_tree_over_many_ranks_is_for_small_tensors(subject: Subject, judge: Judge, world_size: int) -> None:
    _tree(subject, judge, world_size)
