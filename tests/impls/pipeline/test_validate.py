"""Broken schedules: what is wrong is named, with its place, and shown; without processes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from impls.reference.pipeline.actions import Action, Schedule
from impls.reference.pipeline.names import SCHEDULES
from impls.reference.pipeline.rendezvous import Sends
from impls.reference.pipeline.validate import InvalidSchedule, faults, validate

Lists = list[list[str]]


def _change(name: str, change: Callable[[Lists], object]) -> Schedule:
    """The schedule of this name on 4 ranks with 8 microbatches, its lists changed."""
    schedule = SCHEDULES[name](4, 8)
    lists = [[str(action) for action in actions] for actions in schedule]
    change(lists)
    changed = [[Action.parse(text) for text in actions] for actions in lists]
    return Schedule.from_actions("mine", 8, schedule.placement, changed)


def _at(lists: Lists, text: str) -> tuple[list[str], int]:
    return next((actions, actions.index(text)) for actions in lists if text in actions)


def _swap(first: str, second: str) -> Callable[[Lists], object]:
    def change(lists: Lists) -> None:
        (actions, one), (_, other) = _at(lists, first), _at(lists, second)
        actions[one], actions[other] = second, first

    return change


def _replace(text: str, *new: str) -> Callable[[Lists], object]:
    def change(lists: Lists) -> None:
        actions, at = _at(lists, text)
        actions[at : at + 1] = new

    return change


def _all(*changes: Callable[[Lists], object]) -> Callable[[Lists], object]:
    def change(lists: Lists) -> None:
        for one in changes:
            one(lists)

    return change


def _move(text: str, rank: int) -> Callable[[Lists], object]:
    def change(lists: Lists) -> None:
        actions, at = _at(lists, text)
        lists[rank].append(actions.pop(at))

    return change


# What is changed, what is found (kind of fault and where), and what is said.
BROKEN = {
    "a forward is missing": (
        _change("1f1b", _replace("F1.2")),
        [("missing", [(1, 15)])],
        "the forward of microbatch 2 on stage 1 (rank 1) is not done",
    ),
    "a backward is missing": (
        _change("gpipe", _replace("B3.7")),
        [("missing", [(3, 15)])],
        "the backward of microbatch 7 on stage 3 (rank 3) is not done",
    ),
    "both halves of a backward are missing": (
        _change("zb_h1", _all(_replace("I2.5"), _replace("W2.5"))),
        [("missing", [(2, 22)])],
        "the backward of microbatch 5 on stage 2 (rank 2) is not done",
    ),
    "a weight gradient is missing": (
        _change("zbv", _replace("W7.0")),
        [("missing", [(0, 47)])],
        "the gradient of the weights of microbatch 0 on stage 7 (rank 0) is not done",
    ),
    "an input gradient is missing": (
        _change("zb_h1", _replace("I2.5")),
        [("missing", [(2, 23)])],
        "the gradient of the input of microbatch 5 on stage 2 (rank 2) is not done",
    ),
    "half of a pair is missing": (
        _change("dualpipe", _replace("F1.3&B2.5", "F1.3")),
        [("missing", [(1, 15)])],
        "the backward of microbatch 5 on stage 2 (rank 1) is not done",
    ),
    "a rank does nothing": (
        _change("1f1b", lambda lists: lists[3].clear()),
        [("missing", [(3, 0)])] * 5,
        "the forward of microbatch 0 on stage 3 (rank 3) is not done",
    ),
    "a forward is there twice": (
        _change("1f1b", _replace("F1.2", "F1.2", "F1.2")),
        [("doubled", [(1, 2), (1, 3)])],
        "on stage 1 (rank 1) is done 2 times: F1.2 (number 3 in its list), F1.2 (number 4 in its list)",
    ),
    "a backward is there twice": (
        _change("gpipe", _replace("B3.7", "B3.7", "B3.7")),
        [("doubled", [(3, 15), (3, 16)])],
        "the backward of microbatch 7 on stage 3 (rank 3) is done 2 times: B3.7 (number 16 in its list), B3.7",
    ),
    "a whole backward beside its halves": (
        _change("zb_h2", _replace("W3.7", "W3.7", "B3.7")),
        [("doubled", [(3, 24), (3, 16), (3, 23)])],
        "the backward of microbatch 7 on stage 3 (rank 3) is done 2 times: B3.7 (number 25 in its list), I3",
    ),
    "weight gradients of a whole backward again": (
        _change("dualpipev", _replace("W0.7", "W0.7", "W7.7")),
        [("doubled", [(0, 25), (0, 34)])],
        "the gradient of the weights of microbatch 7 on stage 7 (rank 0) is done 2 times: B7.7 (number 26 in its list)",
    ),
    "one too many does not make up for a missing one": (
        _change("interleaved_1f1b", _replace("F5.3", "F5.4")),
        [("missing", [(1, 32)]), ("doubled", [(1, 7), (1, 16)])],
        "Likely: an action with the wrong microbatch or the wrong stage.",
    ),
    "an action on another rank": (
        _change("1f1b", _move("B2.7", rank=1)),
        [("misplaced", [(1, 16)])],
        "B2.7 is on rank 1 (number 17 in its list), but stage 2 is on rank 2",
    ),
    "the microbatch of the other direction": (
        _change("dualpipe", _move("F0.4", rank=0)),
        [("misplaced", [(0, 16)])],
        "F0.4 is on rank 0 (number 17 in its list), but stage 0 is on rank 3",
    ),
    "backward before its forward": (
        _change("1f1b", _swap("F3.2", "B3.2")),
        [("too early", [(3, 4), (3, 5)])],
        "rank 3 has B3.2 (number 5 in its list) no later than F3.2 (number 6 in its list)",
    ),
    "a backward beside its own forward": (
        _change("dualpipev", _all(_replace("F0.7&B7.3", "F0.7&B0.7"), _replace("I0.7", "B7.3"), _replace("W0.7"))),
        [("too early", [(0, 17), (0, 17)])],
        "rank 0 has B0.7 (number 18 in its list) no later than F0.7 (number 18 in its list)",
    ),
    "weight gradients before the gradient of the input": (
        _change("zb_h1", _swap("I3.0", "W3.0")),
        [("too early", [(3, 1), (3, 8)])],
        "rank 3 has W3.0 (number 2 in its list) no later than I3.0 (number 9 in its list)",
    ),
    "two ranks wait for each other's results": (
        _change("1f1b", lambda lists: lists[0].insert(1, lists[0].pop(4))),
        [("deadlock", [(0, 1), (1, 1)])],
        "result of B1.0 on rank 1; rank 1 waits with F1.1 for the result of F0.1 on rank 0",
    ),
    "a rank waits for itself": (
        _change("zbv", _swap("F3.1", "F4.1")),
        [("deadlock", [(3, 2)])],
        "rank 3 waits with F4.1 for the result of F3.1 on rank 3",
    ),
    "forwards change places on one rank": (
        _change("1f1b", _swap("F1.0", "F1.1")),
        [("out of turn", [(1, 0)]), ("out of turn", [(2, 0)])],
        "rank 1 takes the result of F0.1 for F1.1 before one that rank 0 sent earlier",
    ),
}


def _found(schedule: Schedule, sends: Sends = Sends.ORDERED) -> list[tuple[str, list[tuple[int, int]]]]:
    return [(fault.kind, list(fault.places)) for fault in faults(schedule, sends)]


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_is_found_and_told(what: str) -> None:
    schedule, found, told = BROKEN[what]
    assert _found(schedule) == found
    with pytest.raises(InvalidSchedule, match=re.escape(told)):
        validate(schedule)


@pytest.mark.parametrize("name", SCHEDULES)
def test_gpipe_alone_gets_through_with_plain_send_and_recv(name: str) -> None:
    schedule = SCHEDULES[name](4, 8)
    assert not faults(schedule, Sends.POSTED)
    assert not faults(schedule, Sends.ORDERED)
    assert [fault.kind for fault in faults(schedule, Sends.BLOCKING)] == ([] if name == "gpipe" else ["blocked"])


@pytest.mark.parametrize(("name", "gets_through"), [("1f1b", True), ("zb_h1", True), ("zb_h2", False), ("zbv", False)])
def test_sends_exchanged_with_the_next_receive_are_enough_for_some(name: str, gets_through: bool) -> None:
    assert (not faults(SCHEDULES[name](4, 8), Sends.EXCHANGED)) == gets_through


def test_1f1b_with_blocking_sends_stops_where_neighbours_send_to_each_other() -> None:
    schedule = SCHEDULES["1f1b"](4, 8)
    assert _found(schedule, Sends.BLOCKING) == [("blocked", [(2, 1), (3, 1)])]
    with pytest.raises(InvalidSchedule) as raised:
        validate(SCHEDULES["1f1b"](2, 3), Sends.BLOCKING)
    assert str(raised.value).splitlines() == [
        "1f1b is not valid",
        "  blocked: rank 0 has done F0.1 and waits until rank 1 takes the result for F1.1; "
        "rank 1 has done B1.0 and waits until rank 0 takes the result for B0.0",
        "  Likely: two ranks send to each other before they receive: post the sends (isend), or exchange in one call.",
        "rank 0  F0.0 >F0.1< B0.0 F0.2 B0.1 B0.2",
        "rank 1  F1.0 >B1.0< F1.1 B1.1 F1.2 B1.2",
    ]


def test_another_order_on_one_rank_is_fine_where_messages_have_tags() -> None:
    schedule, found, _ = BROKEN["forwards change places on one rank"]
    assert found
    assert not faults(schedule, Sends.POSTED)


def test_another_order_on_all_ranks_is_no_fault() -> None:
    schedule = SCHEDULES["gpipe"](4, 8)
    backwards_in_reverse = [[*actions[:8], *actions[:7:-1]] for actions in schedule]
    validate(Schedule.from_actions("as in the paper's figure", 8, schedule.placement, backwards_in_reverse))


def test_the_message_shows_the_place() -> None:
    with pytest.raises(InvalidSchedule) as raised:
        validate(BROKEN["one too many does not make up for a missing one"][0])
    lines = str(raised.value).splitlines()
    assert lines[:3] == [
        "mine is not valid",
        "  missing: the forward of microbatch 3 on stage 5 (rank 1) is not done",
        "  doubled: the forward of microbatch 4 on stage 5 (rank 1) is done 2 times: "
        "F5.4 (number 8 in its list), F5.4 (number 17 in its list)",
    ]
    assert lines[5].startswith("rank 1")
    assert lines[5].count(">F5.4<") == 2


def test_of_a_large_schedule_what_is_around_the_fault_is_shown() -> None:
    schedule = SCHEDULES["1f1b"](64, 500)
    lists = list(schedule)
    del lists[40][600]
    with pytest.raises(InvalidSchedule) as raised:
        validate(Schedule.from_actions("mine", 500, schedule.placement, lists))
    text = str(raised.value)
    assert "><" in text
    assert "(48 more of 64 ranks)" in text
    assert len(text) < 5000


def test_of_thousands_of_faults_the_first_are_told() -> None:
    schedule = SCHEDULES["1f1b"](64, 500)
    nothing = Schedule.from_actions("nothing", 500, schedule.placement, [[] for _ in range(64)])
    assert len(faults(nothing)) == 5


def test_a_schedule_of_nothing_is_shown_as_well() -> None:
    nothing = Schedule.from_actions("nothing", 1, SCHEDULES["1f1b"](2, 1).placement, [[], []])
    with pytest.raises(InvalidSchedule, match=r"rank 0  ><\nrank 1  ><"):
        validate(nothing)
