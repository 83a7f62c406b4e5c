from __future__ import annotations

import dataclasses
import json
from typing import Any

from conformance.verdict import Verdict
from reports import build, timeline, traces
from tests.reports import sample


def operation(kind: str, seq: int, issued: int, waited: int, done: int, **more: Any) -> dict[str, Any]:
    fields = {"kind": kind, "seq": seq, "group_seq": seq, "group": "default", "ranks": [0, 1], "tag": 0}
    times = {"issued_ns": issued, "waited_ns": waited, "done_ns": done}
    return {**fields, **times, "dtype": "float32", "shape": [4], "num_bytes": 16, "peer": -1, "root": -1, **more}


RANKS = {
    0: {
        "operations": [
            operation("send", 0, 1_000, 2_000, 5_000, peer=1),
            operation("all_reduce", 1, 3_000, 0, 0, where="mine/ddp.py:38"),
        ],
        "marks": [
            {"name": "backward-begin", "at_ns": 1_000, "detail": ""},
            {"name": "backward-end", "at_ns": 4_000, "detail": ""},
            {"name": "step", "at_ns": 6_000, "detail": "0"},
        ],
    },
    1: {"operations": [operation("recv", 0, 2_000, 2_000, 5_500, peer=0)], "marks": []},
}


def events(phase: str) -> list[dict[str, Any]]:
    return [event for event in timeline.chrome_trace(RANKS)["traceEvents"] if event["ph"] == phase]


def test_every_rank_is_a_process_with_its_name() -> None:
    names = {e["pid"]: e["args"]["name"] for e in events("M") if e["name"] == "process_name"}
    assert names == {0: "rank 0", 1: "rank 1"}


def test_an_operation_lasts_from_issue_to_completion_in_microseconds() -> None:
    [send] = [event for event in events("X") if event["name"].startswith("send")]
    assert (send["ts"], send["dur"]) == (0.0, 4.0)
    assert send["args"]["num_bytes"] == 16


def test_the_wait_lies_inside_its_operation() -> None:
    waits = [event for event in events("X") if event["name"] == "wait" and event["pid"] == 0]
    assert [(event["ts"], event["dur"]) for event in waits] == [(1.0, 3.0)]


def test_operations_that_overlap_have_lanes_of_their_own() -> None:
    lanes = [event["tid"] for event in events("X") if event["pid"] == 0 and event["cat"] in ("send", "all_reduce")]
    assert sorted(lanes) == [1, 2]


def test_what_never_completed_says_so_and_lasts_to_the_end() -> None:
    [hung] = [event for event in events("X") if "never completed" in event["name"]]
    assert hung["ts"] + hung["dur"] == 5.0
    assert hung["args"]["where"] == "mine/ddp.py:38"


def test_marks_that_begin_and_end_are_spans_and_others_instants() -> None:
    [span] = [event for event in events("X") if event["cat"] == "mark"]
    assert (span["name"], span["ts"], span["dur"]) == ("backward", 0.0, 3.0)
    assert [event["name"] for event in events("i")] == ["step"]


def test_an_arrow_leads_from_a_send_to_its_receive() -> None:
    [start], [finish] = events("s"), events("f")
    assert start["id"] == finish["id"]
    assert (start["pid"], finish["pid"]) == (0, 1)


def test_no_ranks_make_an_empty_trace() -> None:
    assert timeline.chrome_trace({})["traceEvents"] == []


def test_timelines_leave_the_data_and_get_files() -> None:
    named = {str(rank): parts for rank, parts in RANKS.items()}
    result = sample.result("loop.mean", "mine", Verdict.CRASHES, data={"timeline": named, "kept": 1})
    record = sample.record(extra=(result, dataclasses.replace(result, data={"timeline": named})))
    record, texts = traces.separate(record)
    first, second = record.results[-2:]
    assert first.data.keys() == {"kept", "lanes"}  # the last operations, for the page
    assert first.timeline != second.timeline
    assert set(texts) == {first.timeline, second.timeline}
    assert all(json.loads(text)["traceEvents"] for text in texts.values())
    build.validate(build.build(record))


def test_an_empty_timeline_makes_no_file() -> None:
    result = sample.result("loop.mean", "mine", data={"timeline": {"0": {"operations": [], "marks": []}}})
    record, texts = traces.separate(sample.record(extra=(result,)))
    assert texts == {}
    assert record.results[-1].timeline is None
