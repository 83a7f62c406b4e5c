"""Executed orders: what is made of events, which orders keep a schedule's promise and which do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from conformance.pipeline import executed
from conformance.pipeline.case import SEVERAL
from conformance.pipeline.observed import Event
from impls.reference.pipeline.actions import Action, Kind, Schedule
from impls.reference.pipeline.names import SCHEDULES, named
from impls.torch_native import pipelining

SIZES = [(2, 4), (2, 6), (4, 8), (4, 16)]


def seen(row: Iterable[Action], *, splits: bool) -> list[Action]:
    """A rank's actions, by way of the events that its stages would tell."""
    events, issued, now, call = [], [], 0, 0
    calls: dict[tuple[int, int], int] = {}
    for action in (part for each in row for part in each.parts):
        place = (action.stage, action.microbatch)
        if action.kind is Kind.FORWARD:
            calls[place] = call = call + 1
        kinds = {"B": "IW"}.get(action.kind, action.kind)
        for kind in kinds:
            now += 1
            if kind != "I" or action.stage > 0:
                events.append(Event(kind, *place, calls[place], now))
        now += 1
        issued.append(now)
    return executed.actions(events, issued, splits=splits)


def lists(schedule: Schedule, name: str) -> list[list[Action]]:
    return [seen(actions, splits=name not in executed.WHOLE) for actions in schedule]


def order(name: str, num_ranks: int, num_microbatches: int) -> Schedule:
    return named(name, num_ranks, num_microbatches, SEVERAL.get(name, 1))


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("num_ranks", "num_microbatches"), SIZES)
def test_every_schedule_keeps_its_own_promise(name: str, num_ranks: int, num_microbatches: int) -> None:
    schedule = order(name, num_ranks, num_microbatches)
    assert executed.wrong(name, lists(schedule, name), num_microbatches) is None


@pytest.mark.parametrize("name", ["interleaved_1f1b", "zbv", "dualpipev"])
@pytest.mark.parametrize(("num_ranks", "num_microbatches"), SIZES)
def test_orders_of_torch_keep_their_promise(name: str, num_ranks: int, num_microbatches: int) -> None:
    rows = [[Action.parse(text) for text in row] for row in getattr(pipelining, name)(num_ranks, num_microbatches)]
    assert (
        executed.wrong(name, [seen(row, splits=name not in executed.WHOLE) for row in rows], num_microbatches) is None
    )


@pytest.mark.parametrize(
    ("sold", "runs"),
    [
        ("1f1b", "gpipe"),
        ("gpipe", "1f1b"),
        ("1f1b", "zb_h1"),
        ("zb_h1", "1f1b"),
        ("zb_h1", "gpipe"),
        ("zb_h1", "zb_h2"),
        ("zb_h2", "zb_h1"),
        ("zb_h2", "1f1b"),
        ("zbv", "dualpipev"),
        ("dualpipev", "zbv"),
    ],
)
def test_another_schedule_under_a_name_is_found(sold: str, runs: str) -> None:
    assert executed.wrong(sold, lists(order(runs, 4, 8), sold), 8) is not None


def test_where_the_put_off_weight_gradients_go_in_the_end_is_free() -> None:
    schedule = [list(row) for row in order("zb_h1", 4, 8)]
    for row in schedule:
        last = max(place for place, action in enumerate(row) if action.kind is Kind.INPUT)
        row[last + 1 :] = row[last + 1 :][::-1]
    assert executed.wrong("zb_h1", [seen(row, splits=True) for row in schedule], 8) is None


def test_gpipe_may_go_backward_in_reverse() -> None:
    schedule = [[*row[:6], *row[6:][::-1]] for row in order("gpipe", 3, 6)]
    assert executed.wrong("gpipe", [seen(row, splits=False) for row in schedule], 6) is None


def test_1f1b_backward_in_another_order_is_told() -> None:
    rows = [list(row) for row in order("1f1b", 3, 6)]
    rows[0][-1], rows[0][-2] = rows[0][-2], rows[0][-1]
    wrong = executed.wrong("1f1b", rows, 6)
    assert wrong is not None
    assert "another order of microbatches" in wrong.text


def events(text: str) -> list[Event]:
    """``F0/1``: forward of microbatch 0 in call 1; all of stage 1."""
    return [
        Event(word[0], 1, int(word[1]), int(word[3:]) if "/" in word else int(word[1]) + 1, at)
        for at, word in enumerate(text.split())
    ]


def told(found: Sequence[Action]) -> str:
    return executed.text(found)


@pytest.mark.parametrize(
    ("told_by_stage", "issued", "splits", "actions"),
    [
        ("F0 I0 W0", [], True, "F0 B0"),
        ("F0 W0 I0", [], True, "F0 B0"),
        ("F0 I0 F1 W0", [], True, "F0 I0 F1 W0"),
        ("F0 I0 W0", [1.5], True, "F0 I0 W0"),
        ("F0 I0 W0", [1.5], False, "F0 B0"),
        ("F0/1 F0/2 F1/3 I0/2 W0/2 I1/3 W1/3", [], False, "F0 F1 B0 B1"),
        ("f0/1 F0/2 F1/3 I0/2 W0/2 I1/3 W1/3", [], False, "F0 F1 B0 B1"),
        ("f0/1 f1/2 F0/3 I0/3 W0/3 F1/4 I1/4 W1/4", [], False, "F0 F1 B0 B1"),
        ("F0/1 F1/2 F0/3 I0/1 W0/1 F1/4 I1/2 W1/2", [], False, "F0 F1 B0 B1"),
        ("F0/1 F1/2 F0/3 W0/3 I0/3 F1/4 W1/4 I1/4", [], False, "F0 F1 B0 B1"),
        ("F0/1 F0/2 W0/1 F1/3 F1/4 W1/3", [], False, "F0 W0 F1 W1"),
        ("F0/1 F1/2 F1/3 I0/1 W0/1 I1/2 W1/2", [], False, "F0 F1 F1 B0 B1"),
        ("F0/1 F1/2 F0/3 F1/4 I0/3 W0/3 I1/4 W1/4", [], False, "F0 F1 F0 F1 B0 B1"),
        ("F0 I0 W0 I0 W0", [], False, "F0 B0 B0"),
    ],
    ids=[
        "whole",
        "weights first",
        "apart",
        "sent in between",
        "sent early, not split",
        "trial run with gradients",
        "trial run without",
        "computed again for backward",
        "computed again within a checkpoint",
        "computed again for a backward of its own",
        "computed again at once",
        "twice before another backward",
        "all twice before any backward",
        "backward twice",
    ],
)
def test_events_become_actions(told_by_stage: str, issued: list[int], splits: bool, actions: str) -> None:
    assert told(executed.actions(events(told_by_stage), issued, splits=splits)) == actions


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (["F0 F1 B0 B1", "F0 B0 F1"], "rank 1 does the gradient of the weights of microbatch 1 on stage 1"),
        (["F0 F1 B0 B1 B1", "F0 B0 F1 B1"], "rank 0 does the gradient of the weights of microbatch 1 on stage 0"),
        (["F0 B0 B1", "F0 B0 F1 B1"], "rank 0 does the forward of microbatch 1 on stage 0"),
    ],
    ids=["missing", "doubled", "no forward"],
)
def test_work_that_is_missing_or_doubled_is_told(rows: list[str], text: str) -> None:
    parsed = [[Action.parse(word, rank) for word in row.split()] for rank, row in enumerate(rows)]
    wrong = executed.wrong("1f1b", parsed, 2)
    assert wrong is not None
    assert wrong.text == text
