"""Schedules as data: texts, numbers, lists of actions and the map from stages to ranks."""

from __future__ import annotations

import numpy as np
import pytest

from impls.reference.pipeline.actions import Action, Kind, Numbering, Schedule
from impls.reference.pipeline.names import SCHEDULES
from impls.reference.pipeline.placement import both_ways, one_stage_each, round_robin, v_shape

F, B, I, W = Kind  # noqa: E741


@pytest.mark.parametrize("text", ["F0.3", "B12.0", "I7.3", "W0.10", "F0.3&B7.1"])
def test_an_action_is_read_as_it_is_written(text: str) -> None:
    assert str(Action.parse(text)) == text


def test_the_stage_may_be_left_out_where_it_is_known() -> None:
    assert Action.parse("F3", stage=2) == Action(F, 2, 3)
    assert Action.parse("F3&B1", stage=2) == Action(F, 2, 3, Action(B, 2, 1))
    assert Action.parse("F1.3", stage=2) == Action(F, 1, 3)


@pytest.mark.parametrize("text", ["F3", "X0.3", "F0.", "F.3", "F-1.3", "0.3", "", "F0.3&", "F0.1&B0.2&B0.3"])
def test_what_is_no_action_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no action: expected a kind of F, B, I, W"):
        Action.parse(text)


def test_a_pair_comes_apart() -> None:
    assert Action.parse("F0.3&B7.1").parts == (Action(F, 0, 3), Action(B, 7, 1))
    assert Action.parse("I7.1").parts == (Action(I, 7, 1),)


def test_numbers_stand_for_actions() -> None:
    number = Numbering(num_stages=3, num_microbatches=5)
    every = [Action(kind, stage, mb) for kind in Kind for stage in range(3) for mb in range(5)]
    slots = [number.slot(action.kind, action.stage, action.microbatch) for action in every]
    assert slots == list(range(60))
    assert [number.action(slot) for slot in slots] == every
    assert [number.action(slot) for slot in number.of(W, 2)] == every[-5:]


def test_numbers_grow_with_what_they_count() -> None:
    assert Numbering(2048, 8192).of(F, 0).dtype == np.int32
    assert Numbering(2**20, 2**10).of(F, 0).dtype == np.int64


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_made_of_its_own_lists_is_the_same(name: str) -> None:
    schedule = SCHEDULES[name](4, 8)
    again = Schedule.from_actions(name, 8, schedule.placement, list(schedule))
    assert str(again) == str(schedule)
    assert all(np.array_equal(a, b) for a, b in zip(again.columns, schedule.columns, strict=True))


def test_a_schedule_is_a_sequence_of_lists() -> None:
    schedule = SCHEDULES["1f1b"](3, 2)
    assert len(schedule) == schedule.num_ranks == schedule.num_stages == 3
    assert schedule[2] == schedule[-1] == schedule.actions(2) == [*map(Action.parse, ["F2.0", "B2.0", "F2.1", "B2.1"])]
    assert schedule[1:] == [schedule[1], schedule[2]]
    with pytest.raises(IndexError, match="no rank 3: the schedule has ranks 0 to 2"):
        schedule[3]


def test_lists_may_be_of_different_lengths() -> None:
    lists = [[Action(F, 0, 0)], [], [Action(F, 2, 0), Action(B, 2, 0)]]
    schedule = Schedule.from_actions("mine", 1, one_stage_each(3), lists)
    assert list(schedule) == lists
    assert schedule.lengths.tolist() == [1, 0, 2]
    assert str(schedule) == "rank 0: F0.0\nrank 1: \nrank 2: F2.0 B2.0"


@pytest.mark.parametrize("text", ["F2.0", "F0.3", "F0.0&B2.0", "W9.9"])
def test_an_action_outside_the_schedule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is outside the schedule: there are stages 0 to 1 and microbatches 0 to 2"):
        Schedule.from_actions("mine", 3, one_stage_each(2), [[Action.parse(text)], []])


def test_which_rank_holds_which_stage() -> None:
    assert [one_stage_each(4).stages_of(rank) for rank in range(4)] == [[0], [1], [2], [3]]
    assert [round_robin(2, 3).stages_of(rank) for rank in range(2)] == [[0, 2, 4], [1, 3, 5]]
    assert [v_shape(3).stages_of(rank) for rank in range(3)] == [[0, 5], [1, 4], [2, 3]]
    assert [both_ways(4).stages_of(rank) for rank in range(4)] == [[0, 3], [1, 2], [1, 2], [0, 3]]


def test_in_both_directions_the_microbatch_decides_the_rank() -> None:
    schedule = SCHEDULES["dualpipe"](4, 8)
    assert [schedule.rank_of(1, microbatch) for microbatch in range(8)] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert SCHEDULES["zbv"](4, 8).rank_of(7) == 0
