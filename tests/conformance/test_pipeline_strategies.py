"""What the checks of a pipeline's cut, traffic and costs accept and refuse; on made-up cuts and traces."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.strategies.cuts import costs_of, fault_in, least_bottleneck
from conformance.strategies.pipeline_link import WORKLOADS
from conformance.strategies.pipeline_losses import LATENCY, losses
from conformance.strategies.pipeline_traffic import NOTE_BYTES, Plan, Step, extras
from conformance.strategies.pipeline_traffic import fault_in as traffic_fault
from fixtures.world.outcome import Operation
from impls.reference.pipeline import gpipe, one_f_one_b
from impls.reference.pipeline.placement import both_ways, one_stage_each, round_robin, v_shape

# -- cuts --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([[0, 1], [2, 3, 4]], ""),
        ([[0, 1], [3, 4]], "layer 2 is in no stage"),
        ([[0, 1, 2], [2, 3, 4]], "layer 2 is in stages 0 and 1"),
        ([[0, 2], [1, 3, 4]], "not contiguous"),
        ([[1, 0], [2, 3, 4]], "not contiguous"),
        ([[2, 3, 4], [0, 1]], "not in order"),
        ([[], [0, 1, 2, 3, 4]], "stage 0 is empty"),
        ([[0, 1, 2, 3, 4]], "1 stage instead of 2"),
        ([[1, 2], [3, 4, 5]], "has a layer 5"),
        ([[-1, 0], [1, 2, 3, 4]], "has a layer -1"),
    ],
)
def test_only_contiguous_stages_of_all_layers_are_a_cut(stages: list[list[int]], said: str) -> None:
    fault = fault_in(stages, 5, 2)
    assert said in fault
    assert bool(fault) is bool(said)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.data())
def test_no_cut_has_less_than_the_least_bottleneck_and_one_has_it(costs: list[int], data: st.DataObject) -> None:
    num_stages = data.draw(st.integers(1, len(costs)))
    cuts = itertools.combinations(range(1, len(costs)), num_stages - 1)
    ways = [[range(*pair) for pair in itertools.pairwise((0, *cut, len(costs)))] for cut in cuts]
    assert least_bottleneck(costs, num_stages) == min(max(costs_of(way, costs)) for way in ways)


# -- traffic -----------------------------------------------------------------------------------------------------------

ACTIVATION = 10_000
MICRO = 4
PLAN = Plan(placement=one_stage_each(3), num_microbatches=MICRO, activation_bytes=ACTIVATION)
FORWARD_AND_BACK = [(0, 1), (1, 0), (1, 2), (2, 1)]


def _operation(kind: str, num_bytes: int, **more: Any) -> Operation:
    fields = {"seq": 0, "group": "0", "group_seq": 0, "dtype": "float32", "shape": (), "ranks": (0, 1, 2)}
    return Operation(kind=kind, num_bytes=num_bytes, **{**fields, **more})


def _sent(pairs: list[tuple[int, int]], num_bytes: int = ACTIVATION, times: int = MICRO) -> list[list[Operation]]:
    """Operations of three ranks: messages of `num_bytes`, on both of their ends."""
    found: list[list[Operation]] = [[], [], []]
    for source, target in pairs * times:
        found[source].append(_operation("send", num_bytes, peer=target))
        found[target].append(_operation("recv", num_bytes, peer=source))
    return found


def _with(more: list[list[Operation]], base: list[list[Operation]] | None = None) -> Step:
    base = _sent(FORWARD_AND_BACK) if base is None else base
    return Step.of([[*first, *second] for first, second in zip(base, more, strict=True)])


def _everywhere(kind: str, num_bytes: int, **more: Any) -> list[list[Operation]]:
    return [[_operation(kind, num_bytes, ranks=(0, 1, 2), **more)] for _ in range(3)]


@pytest.mark.parametrize(
    "step",
    [
        _with([[], [], []]),
        _with(_sent([(0, 1), (0, 2), (2, 0)], 64)),
        _with(_everywhere("broadcast", NOTE_BYTES, root=2)),
        _with(_everywhere("barrier", 0)),
        Step.of(_sent(FORWARD_AND_BACK, ACTIVATION + 500)),
        Step.of(_sent(FORWARD_AND_BACK, ACTIVATION // 2, 2 * MICRO)),
        Step.of(_sent(FORWARD_AND_BACK, ACTIVATION // 10, 10 * MICRO)),
    ],
    ids=["plain", "headers", "losses for all", "a barrier", "headers within", "halves", "small pieces"],
)
def test_activations_and_gradients_with_notes_beside_them_are_the_traffic_of_a_pipeline(step: Step) -> None:
    assert traffic_fault(step, PLAN) == ""
    assert sum(extras(step, PLAN).values()) == 0


def test_a_broadcast_of_two_ranks_is_a_message() -> None:
    found: list[list[Operation]] = [[], [], []]
    for source, target in FORWARD_AND_BACK * MICRO:
        for rank in (source, target):
            ranks = tuple(sorted((source, target)))
            found[rank].append(_operation("broadcast", ACTIVATION, root=source, ranks=ranks))
    assert traffic_fault(Step.of(found), PLAN) == ""


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step.of([[], [], []]), "rank 0 sends rank 1 0 bytes"),
        (Step.of(_sent([(0, 1), (1, 2)])), "rank 1 sends rank 0 0 bytes"),
        (_with(_sent([(2, 1)])), "rank 2 sends rank 1 80,000 bytes"),
        (_with(_sent([(0, 1)], times=1)), "in 5 messages"),
        (Step.of(_sent(FORWARD_AND_BACK, 2 * ACTIVATION)), "80,000 bytes"),
        (Step.of(_sent(FORWARD_AND_BACK, ACTIVATION // 2)), "20,000 bytes"),
        (Step.of(_sent(FORWARD_AND_BACK, MICRO * ACTIVATION, 1)), "in 1 message,"),
        (_with(_sent([(0, 2)])), "which holds no stage next to"),
        (_with(_everywhere("all_gather", ACTIVATION)), "all_gather over ranks [0, 1, 2]"),
        (_with(_everywhere("broadcast", ACTIVATION, root=0)), "broadcast over ranks [0, 1, 2]"),
    ],
    ids=[
        *("nothing", "no gradients", "gradients twice", "one too many", "doubles", "halves of precision"),
        *("all microbatches at once", "across a rank", "gathered by all", "broadcast to all"),
    ],
)
def test_what_is_sent_otherwise_is_told(step: Step, said: str) -> None:
    assert said in traffic_fault(step, PLAN)


SHARED = 30_000
TIED = Plan(
    placement=one_stage_each(3),
    num_microbatches=MICRO,
    activation_bytes=ACTIVATION,
    shared_bytes={0: SHARED, 2: SHARED},
)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (_sent([(0, 2), (2, 0)], SHARED, 1), ""),
        ([[_operation("all_reduce", SHARED, ranks=(0, 2))] * (rank != 1) for rank in range(3)], ""),
        (_sent([(0, 2), (2, 0)], SHARED, MICRO), "rank 0 moves 120,000 bytes to add up gradients of 30,000"),
        (_sent([(0, 1)], SHARED, 1), "rank 0 sends rank 1 70,000 bytes"),
        (_everywhere("all_reduce", SHARED), ""),
        (_everywhere("all_gather", 3 * SHARED), "rank 0 moves 90,000 bytes to add up gradients of 30,000"),
    ],
    ids=["exchanged", "all-reduced", "once for each microbatch", "by way of another rank", "on all ranks", "gathered"],
)
def test_gradients_of_copies_are_added_up_once_by_those_who_hold_them(more: list[list[Operation]], said: str) -> None:
    fault = traffic_fault(_with(more), TIED)
    assert said in fault
    assert bool(fault) is bool(said)


def test_only_boundaries_between_ranks_are_crossed() -> None:
    def crossings(placement: Any) -> dict[tuple[int, int], int]:
        return dict(Plan(placement=placement, num_microbatches=2, activation_bytes=1).crossings())

    assert crossings(v_shape(2)) == {(0, 1): 4, (1, 0): 4}  # the two stages at the bottom are on one rank
    assert crossings(round_robin(2, 2)) == {(0, 1): 6, (1, 0): 6}
    assert crossings(both_ways(2)) == {(0, 1): 2, (1, 0): 2}
    assert crossings(one_stage_each(1)) == {}


# -- link and cost -----------------------------------------------------------------------------------------------------


def test_a_pipeline_does_with_least_for_a_large_model_and_not_for_a_small_one_with_many_tokens() -> None:
    large, small = WORKLOADS
    assert large.does_with_least
    assert small.ddp_bytes < small.pipeline_bytes < small.tensor_bytes


@pytest.mark.parametrize(("n", "m"), [(2, 4), (4, 4), (4, 16), (8, 32)])
def test_losses_are_those_of_the_closed_forms(n: int, m: int) -> None:
    for schedule, latency in ((gpipe(n, m), 2 * (n - 1)), (one_f_one_b(n, m), 2 * (Fraction((n - 1) * m, n) + n - 2))):
        found = losses(schedule)
        assert found.bubble == 3 * (n - 1)
        assert found.share == Fraction(n - 1, m + n - 1)
        assert found.latency == latency * LATENCY
        assert found.imbalance > 0
