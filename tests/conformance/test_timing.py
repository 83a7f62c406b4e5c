"""Times on a network from traces made by hand: what a rank's order inside of a step may change, and what it may not."""

from __future__ import annotations

import pytest

from conformance.collectives.costs import Count
from conformance.collectives.programs import BEGIN, END
from conformance.collectives.timing import Timed, ring_latencies, timed
from conformance.collectives.traffic import sent
from conformance.judge import Judge
from fixtures.world.outcome import Ending, Mark, Outcome, Outcomes
from tests.conformance.test_steps import Clock

N = 4
STEPS = 2 * (N - 1)
CHUNK_BYTES = 8
NUMEL = N * CHUNK_BYTES // 4
LATER = 10**6  # than all operations


def ring(receive_first: set[int]) -> Timed:
    """A ring all-reduce over N ranks, in which these ranks receive before they send."""
    ranks = [Clock(N) for _ in range(N)]
    for _ in range(STEPS):
        for rank, clock in enumerate(ranks):
            halves = [lambda c=clock, r=rank: c.send((r + 1) % N, CHUNK_BYTES)]
            halves.insert(rank not in receive_first, lambda c=clock, r=rank: c.recv((r - 1) % N, CHUNK_BYTES))
            for half in halves:
                half()
    marks = (Mark(name=BEGIN, at_ns=0), Mark(name=END, at_ns=LATER))
    outcomes = [
        Outcome(rank=rank, ending=Ending.RETURNED, operations=clock.operations, marks=marks)
        for rank, clock in enumerate(ranks)
    ]
    counted = Count(
        name="ring_allreduce",
        world_size=N,
        numel=NUMEL,
        outcomes=Outcomes(outcomes),
        sent=tuple(sent(clock.operations) for clock in ranks),
        empty_tensors=0,
    )
    return timed(Judge(), counted)


@pytest.mark.parametrize("size", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("receive_first", [set(), {1, 3}, {0, 2}], ids=["nobody", "odd", "even"])
def test_ring_whose_halves_come_in_either_order_is_timed_as_one_ring(receive_first: set[int], size: float) -> None:
    assert ring(receive_first).latencies(size) == pytest.approx(ring_latencies(N, size))


def test_ring_in_which_a_message_goes_once_around_in_each_step_is_timed_as_what_it_is() -> None:
    size = 1.0
    assert ring({1, 2, 3}).latencies(size) == pytest.approx(N * ring_latencies(N, size))
