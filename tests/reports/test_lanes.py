from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from conformance.verdict import Verdict
from reports import build, html, lanes, traces
from tests.reports import sample
from tests.reports.test_html import whole
from tests.reports.test_timeline import RANKS, operation

ROWS = [[0, "send #0", 0.0, 1.0, 4.0], [0, "all_reduce #1", 2.0, None, None], [1, "recv #0", 1.0, 1.0, 4.5]]


def test_operations_are_kept_in_microseconds_from_the_first() -> None:
    assert lanes.kept(RANKS) == ROWS


def test_the_last_operations_are_kept() -> None:
    many = [operation("send", n, 1_000 * (n + 1), 0, 1_000 * (n + 1) + 500) for n in range(100)]
    rows = lanes.kept({0: {"operations": many}})
    assert len(rows) == lanes.KEPT
    assert (rows[0][1:3], rows[-1][1]) == (["send #76", 0.0], "send #99")


def test_what_never_completed_reaches_the_end_and_says_so() -> None:
    picture = lanes.picture({"lanes": ROWS})
    assert picture is not None
    _, hung, recv = picture.boxes
    assert [tick.label for tick in picture.rows] == ["rank 0", "rank 1"]
    assert hung.is_open
    assert hung.x + hung.width == lanes.WIDTH - lanes.RIGHT > recv.x + recv.width
    assert "never completed" in hung.told
    assert dict(picture.orders)[0] == "send #0 0 to 0.004 ms; all_reduce #1 never completed, since 0.002 ms"


def test_operations_that_overlap_share_the_row() -> None:
    picture = lanes.picture({"lanes": ROWS})
    assert picture is not None
    send, hung, recv = picture.boxes
    assert (send.height, hung.height, recv.height) == (lanes.ROW / 2, lanes.ROW / 2, lanes.ROW)
    assert send.y + send.height == hung.y


def test_the_wait_begins_where_the_program_began_to_wait() -> None:
    picture = lanes.picture({"lanes": ROWS})
    assert picture is not None
    send, hung, recv = picture.boxes
    assert send.waited_x is not None
    assert send.x < send.waited_x < send.x + send.width
    assert hung.waited_x is None
    assert recv.waited_x == recv.x


@pytest.mark.parametrize("rows", [None, [], [7], [[0, "a", None, 0, 1]], [["0", "a", 0, 0, 1]], [[0, "a", 5, None, 1]]])
def test_what_is_no_operation_is_left_out(rows: Any) -> None:
    assert lanes.picture({"lanes": rows}) is None


def test_a_broken_case_is_drawn_on_its_card_and_one_that_holds_is_not() -> None:
    data = {"timeline": {str(rank): seen for rank, seen in RANKS.items()}}
    hangs = sample.result("loop.same-init", "mine", Verdict.HANGS, case="a", data=data)
    holds = dataclasses.replace(hangs, verdict=Verdict.HOLDS, case="b")
    record, files = traces.separate(sample.record(extra=(hangs, holds)))
    assert [("lanes" in result.data) for result in record.results[-2:]] == [True, False]
    assert len(files) == 2
    page = whole(html.render(build.build(record)))
    assert page.count('class="gantt lanes"') == 1
    assert "all_reduce #1 never completed" in page
