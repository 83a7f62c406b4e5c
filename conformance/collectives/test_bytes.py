"""How many bytes each rank sends: trace of every rank, set against what the operating system saw on the wire."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import strategies as st

from conformance.checks import Judge, Subject, claim
from conformance.collectives.costs import (
    DIVISIBLE,
    ITEM_BYTES,
    Count,
    count,
    judge_chunks,
    judge_equal_bytes,
    judge_wire,
    log2_ceil,
)
from conformance.verdict import Tier, Witness
from fixtures import draws

T = DIVISIBLE * ITEM_BYTES  # bytes of one rank's tensor

core_sizes = pytest.mark.parametrize("world_size", [2, 3, 4])
large_sizes = pytest.mark.parametrize("world_size", [1, 5, 8])


def _uneven(*sizes: int) -> st.SearchStrategy[tuple[int, int]]:
    """World size and number of elements; N need not divide it, nor be smaller."""
    return st.tuples(draws.world_sizes(*sizes), st.integers(0, 60))


def _count_uneven(subject: Subject, judge: Judge, name: str, case: tuple[int, int], passes: int) -> None:
    world_size, numel = case
    empty_tensors = passes * (world_size - 1)  # 4 elements in chunks of 2 leave the third of 3 ranks an empty one
    counted = count(subject, judge, name, world_size, numel, empty_tensors=empty_tensors)
    judge_chunks(judge, counted, passes)


@claim("collectives.ring.bytes", provides=["ring_allreduce"])
@core_sizes
def test_each_rank_of_a_ring_sends_2t_n_minus_1_over_n(subject: Subject, judge: Judge, world_size: int) -> None:
    counted = count(subject, judge, "ring_allreduce", world_size)
    judge_wire(judge, counted)
    judge_equal_bytes(judge, counted, "2T(N-1)/N", 2 * T * (world_size - 1) // world_size)


@claim("collectives.ring.bytes", provides=["ring_allreduce"])
def test_a_ring_sends_chunks_when_n_does_not_divide_the_tensor(subject: Subject, judge: Judge) -> None:
    cases = _uneven(2, 3, 4)
    judge.forall(cases, lambda case: _count_uneven(subject, judge, "ring_allreduce", case, 2), max_examples=15)


@claim("collectives.ring.bytes", provides=["ring_allreduce"], tier=Tier.EXOTIC)
def test_a_ring_sends_chunks_on_any_number_of_ranks(subject: Subject, judge: Judge) -> None:
    cases = _uneven(5, 8, 1)
    judge.forall(cases, lambda case: _count_uneven(subject, judge, "ring_allreduce", case, 2), max_examples=15)


@claim("collectives.ring.bytes", provides=["ring_allreduce"], tier=Tier.EXOTIC)
def test_bytes_of_a_ring_follow_the_formula_from_one_rank_to_eight(subject: Subject, judge: Judge) -> None:
    points: list[dict[str, Any]] = []
    for world_size in range(1, 9):
        counted = count(subject, judge, "ring_allreduce", world_size)
        formula = 2 * T * (world_size - 1) // world_size
        points.append({"x": world_size, "observed": max(counted.by_rank), "formula": formula})
    data = {"plot": "ring-bytes", "points": points}
    wrong = [point for point in points if point["observed"] != point["formula"]]
    if wrong:
        judge.violated(
            f"with {wrong[0]['x']} ranks the busiest sends {wrong[0]['observed']:,} bytes",
            expected=f"2T(N-1)/N = {wrong[0]['formula']:,}",
            observed=f"{wrong[0]['observed']:,}",
            witness=Witness.TRACE,
            unit="bytes",
            data=data,
        )
    judge.holds(
        expected=f"2T(N-1)/N for N = 1 to 8, T = {T:,}",
        observed="2T(N-1)/N",
        witness=Witness.TRACE,
        unit="bytes",
        message="bytes per rank against N",
        examples=len(points),
        data=data,
    )


def _judge_tree_bytes(judge: Judge, counted: Count) -> None:
    """The busiest rank within T ceil(log2 N); beside it what the printed formula leaves out: the mean, the rounding."""
    world_size = counted.world_size
    busiest, mean = max(counted.by_rank), sum(counted.by_rank) / world_size
    bound, printed = T * log2_ceil(world_size), T * math.log2(world_size)
    ring = 2 * T * (world_size - 1) / world_size
    data = {
        "busiest_bytes": busiest,
        "mean_bytes": mean,
        "ring_bytes": ring,
        "unrounded_bytes": printed,
        "plot": "tree-bytes",
        "points": [{"x": world_size, "observed": busiest, "formula": bound}],
    }
    if busiest > bound or sum(counted.by_rank) < 2 * T * (world_size - 1):
        judge.violated(
            f"{world_size} ranks sent {counted.by_rank} bytes of T = {T:,}",
            expected=f"at most T ceil(log2 N) = {bound:,} on the busiest rank, 2T(N-1) on all together",
            observed=f"{busiest:,} on rank {counted.by_rank.index(busiest)}, {sum(counted.by_rank):,} together",
            witness=Witness.TRACE,
            unit="bytes",
            data=data,
            outcomes=counted.outcomes,
        )
    judge.holds(
        expected=f"at most T ceil(log2 N) = {bound:,} on the busiest rank",
        observed=f"{busiest:,} on the busiest rank, {mean:,.0f} on average (2T(N-1)/N = {ring:,.0f})",
        witness=Witness.TRACE,
        unit="bytes",
        message=_conditions(busiest, mean, printed, world_size),
        data=data,
    )


def _conditions(busiest: int, mean: float, printed: float, world_size: int) -> str:
    """Where the printed `T log2(N) per rank` is refuted by this very run, and where it is not."""
    told = [f"the bound holds for the busiest of {world_size} ranks"]
    if mean < busiest:
        told.append("not every rank sends that much: the mean is lower")
    if busiest > printed:
        told.append(f"without rounding up, T log2 {world_size} = {printed:,.0f} would be too low")
    return "; ".join(told)


@claim("collectives.tree.bytes", provides=["tree_allreduce"])
@core_sizes
def test_the_busiest_rank_of_a_tree_sends_t_log2_n(subject: Subject, judge: Judge, world_size: int) -> None:
    counted = count(subject, judge, "tree_allreduce", world_size)
    judge_wire(judge, counted)
    _judge_tree_bytes(judge, counted)


@claim("collectives.tree.bytes", provides=["tree_allreduce"], tier=Tier.EXOTIC)
@large_sizes
def test_the_busiest_rank_of_a_large_tree_sends_t_log2_n(subject: Subject, judge: Judge, world_size: int) -> None:
    _judge_tree_bytes(judge, count(subject, judge, "tree_allreduce", world_size))


@claim("collectives.allgather.bytes", provides=["ring_allgather"])
@core_sizes
def test_each_rank_of_a_gathering_ring_sends_t_n_minus_1_over_n(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    counted = count(subject, judge, "ring_allgather", world_size)
    judge_wire(judge, counted)
    judge_equal_bytes(judge, counted, "T(N-1)/N", T * (world_size - 1))  # T here is the output, N times the input


@claim("collectives.allgather.bytes", provides=["ring_allgather"], tier=Tier.EXOTIC)
@large_sizes
def test_each_rank_of_a_large_gathering_ring_sends_t_n_minus_1_over_n(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    counted = count(subject, judge, "ring_allgather", world_size, numel=101)
    judge_equal_bytes(judge, counted, "T(N-1)/N", 101 * ITEM_BYTES * (world_size - 1))


@claim("collectives.reduce-scatter.bytes", provides=["ring_reduce_scatter"])
@core_sizes
def test_each_rank_of_a_scattering_ring_sends_t_n_minus_1_over_n(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    counted = count(subject, judge, "ring_reduce_scatter", world_size)
    judge_wire(judge, counted)
    judge_equal_bytes(judge, counted, "T(N-1)/N", T * (world_size - 1) // world_size)


@claim("collectives.reduce-scatter.bytes", provides=["ring_reduce_scatter"], tier=Tier.EXOTIC)
def test_a_scattering_ring_sends_chunks_on_any_number_of_ranks(subject: Subject, judge: Judge) -> None:
    cases = _uneven(3, 5, 8, 1)
    judge.forall(cases, lambda case: _count_uneven(subject, judge, "ring_reduce_scatter", case, 1), max_examples=15)
