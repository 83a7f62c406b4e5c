"""The simulator: every action begins as soon as it can, with any costs, exactly; and what it says of the whole."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from impls.reference.pipeline.actions import Action, Kind, Schedule
from impls.reference.pipeline.costs import Costs, Number
from impls.reference.pipeline.counts import held, paired_share, peak_activations
from impls.reference.pipeline.names import SCHEDULES
from impls.reference.pipeline.placement import one_stage_each
from impls.reference.pipeline.simulate import simulate

F, B, I, W = Kind  # noqa: E741
SIZES = {"dualpipe": [(2, 4), (4, 8), (4, 10)], "interleaved_1f1b": [(1, 2), (3, 3), (3, 9)]}
OTHERS = [(1, 2), (2, 5), (3, 6), (4, 8)]
COST = st.one_of(st.integers(0, 9), st.fractions(0, 5, max_denominator=12))


def _schedule(text: str) -> Schedule:
    """One line for each rank, and one stage on each."""
    lists = [[Action.parse(one, rank) for one in line.split()] for rank, line in enumerate(text.split("/"))]
    count = 1 + max(action.microbatch for actions in lists for action in actions)
    return Schedule.from_actions("mine", count, one_stage_each(len(lists)), lists)


def _needed(action: Action) -> list[Action]:
    """Whichever of these is in the schedule has to be done before, and its result has to be there."""
    stage = {F: action.stage - 1, W: -1}.get(action.kind, action.stage + 1)
    return [Action(kind, stage, action.microbatch) for kind in ((F,) if action.kind == F else (B, I))]


@settings(max_examples=100, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(SCHEDULES)))
def test_every_action_begins_as_soon_as_it_can(data: st.DataObject, name: str) -> None:
    schedule = SCHEDULES[name](*data.draw(st.sampled_from(SIZES.get(name, OTHERS))))
    each = st.lists(COST, min_size=schedule.num_stages, max_size=schedule.num_stages)
    forward, inputs, weights = (data.draw(each) for _ in range(3))
    latency = data.draw(COST)
    backward, pair = (data.draw(st.one_of(st.none(), each)) for _ in range(2))
    costs = Costs(forward=forward, input=inputs, weight=weights, backward=backward, pair=pair, latency=latency)
    timeline = simulate(schedule, costs)

    cost_of = {F: forward, I: inputs, W: weights, B: backward or [a + b for a, b in zip(inputs, weights, strict=True)]}
    spans = [timeline.spans(rank) for rank in range(schedule.num_ranks)]
    ends = {part: (end, rank) for rank, row in enumerate(spans) for action, _, end in row for part in action.parts}
    for rank, row in enumerate(spans):
        assert [action for action, _, _ in row] == schedule[rank]
        free: Number = 0
        for action, begin, end in row:
            sources = [ends[needed] for part in action.parts for needed in _needed(part) if needed in ends]
            assert begin == max([free, *(made + (latency if maker != rank else 0) for made, maker in sources)])
            both = sum(cost_of[part.kind][part.stage] for part in action.parts)
            assert end - begin == (pair[action.stage] if pair and action.beside else both)
            free = end

    finish, first = [row[-1][2] for row in spans], [row[0][1] for row in spans]
    busy = [sum(end - begin for _, begin, end in row) for row in spans]
    assert (timeline.makespan, timeline.busy) == (max(finish), busy)
    assert timeline.bubble() == [max(finish) - worked for worked in busy]
    assert timeline.bubble(barrier=False) == [a - b - c for a, b, c in zip(finish, first, busy, strict=True)]
    assert timeline.bubble_share() * (sum(busy) + sum(timeline.bubble())) == sum(timeline.bubble())


def test_costs_are_1_if_nothing_else_is_said() -> None:
    timeline = simulate(_schedule("F0 B0/F0 I0 W0"))
    assert [(str(action), begin, end) for action, begin, end in timeline.spans(1)] == [
        ("F1.0", 1, 2),
        ("I1.0", 2, 3),
        ("W1.0", 3, 4),
    ]
    assert [(str(action), begin, end) for action, begin, end in timeline.spans(0)] == [("F0.0", 0, 1), ("B0.0", 3, 5)]


@pytest.mark.parametrize("denominator", [7, 10**6 + 3, 10**12])
def test_sums_are_exact_at_any_fineness(denominator: int) -> None:
    tick = Fraction(1, denominator)
    timeline = simulate(SCHEDULES["1f1b"](3, 5), Costs(forward=1 + tick, latency=3 * tick))
    assert timeline.makespan == 7 * (3 + tick) + 2 * 3 * tick * (Fraction(2 * 5 - 1, 3) + 1)


def test_costs_too_fine_for_64_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="to be added exactly in 64 bits: round them, or give floats"):
        simulate(SCHEDULES["1f1b"](3, 5), Costs(forward=Fraction(1, 10**18)))


def test_floats_stay_floats() -> None:
    exact = simulate(SCHEDULES["zbv"](3, 6), Costs(forward=Fraction(3, 4), latency=Fraction(1, 8)))
    timeline = simulate(SCHEDULES["zbv"](3, 6), Costs(forward=0.75, latency=0.125))
    assert type(timeline.makespan) is float
    assert (timeline.makespan, timeline.bubble()) == (exact.makespan, exact.bubble())
    assert timeline.bubble_share() == pytest.approx(float(exact.bubble_share()), rel=1e-15)  # one division of sums


@pytest.mark.parametrize("given_as", [list, tuple, np.array])
def test_one_cost_for_each_stage(given_as: Any) -> None:
    timeline = simulate(SCHEDULES["gpipe"](3, 1), Costs(forward=given_as([1, 20, 300]), backward=0))
    assert timeline.makespan == 321
    assert timeline.busy == [1, 20, 300]


def test_a_slow_stage_makes_the_others_wait_for_it_with_every_microbatch() -> None:
    idle = [simulate(SCHEDULES["1f1b"](4, m), Costs(forward=[1, 1, 2, 1])).bubble()[0] for m in (8, 16, 32)]
    assert [b - a for a, b in itertools.pairwise(idle)] == [8, 16]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"forward": [1, 2]}, "forward has 2 costs for 3 stages: give one for each stage, or one for all"),
        ({"weight": -1}, "weight = -1: a cost is a finite number of at least 0"),
        ({"latency": math.inf}, "latency = inf: a cost is a finite number of at least 0"),
        ({"pair": [1, 1, math.nan]}, "pair = nan: a cost is a finite number of at least 0"),
    ],
)
def test_costs_that_make_no_sense(costs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(SCHEDULES["1f1b"](3, 5), Costs(**costs))


def test_a_schedule_that_cannot_be_worked_off() -> None:
    with pytest.raises(ValueError, match=r"2 of 2 ranks wait for ever, rank 0 with B0.0; validate\(schedule\) shows"):
        simulate(_schedule("F0 B0 F1 B1/F0 F1 B0 B1"))


def test_nothing_idles_and_nothing_is_exposed_on_one_rank() -> None:
    timeline = simulate(SCHEDULES["dualpipev"](1, 4), Costs(latency=5))
    assert (timeline.bubble_share(), timeline.communication_hidden()) == (0, 1)


@pytest.mark.parametrize("cost", [0, 0.0])
def test_work_that_takes_no_time_has_no_bubble(cost: float) -> None:
    timeline = simulate(SCHEDULES["1f1b"](2, 2), Costs(forward=cost, input=cost, weight=cost))
    assert timeline.bubble_share() == timeline.bubble_share("ideal") == 0


def test_a_share_is_of_total_or_of_ideal_time() -> None:
    with pytest.raises(ValueError, match="'whole' is not a valid ShareOf"):
        simulate(SCHEDULES["1f1b"](2, 2)).bubble_share("whole")


def test_latency_is_hidden_where_the_receiver_works_meanwhile() -> None:
    # On rank 1 the first of four forwards is waited for, on rank 0 the first of four gradients.
    assert simulate(SCHEDULES["gpipe"](2, 4), Costs(latency=Fraction(1, 2))).communication_hidden() == Fraction(6, 8)
    # Rank 0 has nothing to do while a gradient travels, and rank 1 nothing while a forward does that waited for it.
    assert simulate(_schedule("F0 B0 F1 B1/F0 B0 F1 B1"), Costs(latency=1)).communication_hidden() == 0
    assert simulate(SCHEDULES["gpipe"](2, 4)).communication_hidden() == 1


def test_a_message_is_exposed_no_longer_than_it_travels() -> None:
    # Rank 1 is idle for 100 while rank 0 computes: that is bubble, and not communication.
    timeline = simulate(_schedule("F0 B0/F0 B0"), Costs(forward=100, latency=1))
    assert timeline.communication_hidden() == 0
    assert timeline.bubble()[1] == 100 + 2 + 2


def _held(schedule: Schedule) -> list[Sequence[int]]:
    return [held(schedule, rank).tolist() for rank in range(schedule.num_ranks)]


def test_activations_are_held_to_the_end_of_b_or_w() -> None:
    assert _held(_schedule("F0 F1 B0 B1/F0 I0 F1 I1 W1 W0")) == [[1, 2, 2, 1], [1, 1, 2, 2, 2, 1]]
    assert _held(_schedule("F0 F1&B0 B1/F0 B0 F1 B1")) == [[1, 2, 1], [1, 1, 1, 1]]
    assert peak_activations(_schedule("F0 F1&B0 B1/F0 B0 F1 B1")) == [2, 1]


def test_both_of_a_pair_are_paired_and_weight_gradients_are_not_counted() -> None:
    assert paired_share(_schedule("F0 F1&I0 W0 B1/F0 B0 F1 B1")) == [Fraction(2, 4), 0]


def test_more_ranks_than_a_screen_has_lines() -> None:
    timeline = simulate(SCHEDULES["dualpipev"](96, 200))
    assert timeline.bubble_share() == Fraction(95, 3 * 200 + 95)
