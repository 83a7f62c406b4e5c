"""Operations and marks of a world as a Chrome trace, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

One process per rank. Its first track holds the marks: ``NAME-begin`` and ``NAME-end`` become a span, any other mark an
instant. The tracks below hold the operations from issue to completion, on as many lanes as overlap, with the time that
the program waited for each inside it. An arrow leads from each send to the receive that took it.
Input is plain dicts with the names and units of the witnesses' Operation and Mark (times in nanoseconds).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.files import write_whole
from reports.text import safe

Event = dict[str, Any]
Fields = Mapping[str, Any]

_MARKS_TRACK = 0


def chrome_trace(ranks: Mapping[int, Mapping[str, Sequence[Fields]]], title: str = "") -> dict[str, Any]:
    """Return the trace of ``{rank: {"operations": [...], "marks": [...]}}`` as JSON values."""
    operations = {rank: list(seen.get("operations", ())) for rank, seen in ranks.items()}
    marks = {rank: list(seen.get("marks", ())) for rank, seen in ranks.items()}
    times = [t for ops in operations.values() for op in ops for t in _times(op)]
    times += [mark["at_ns"] for seen in marks.values() for mark in seen]
    start, end = min(times, default=0), max(times, default=0)
    events: list[Event] = []
    for rank in sorted(ranks):
        events += _names(rank)
        events += _marks(rank, marks[rank], start, end)
        events += _operations(rank, operations[rank], start, end)
    events += _arrows(operations, start)
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"title": safe(title), "suite": "Lockstep"}}


def write(path: Path, ranks: Mapping[int, Mapping[str, Sequence[Fields]]], title: str = "") -> None:
    """Write the trace to ``path``, whole or not at all (CannotWrite)."""
    write_whole(path, json.dumps(chrome_trace(ranks, title), ensure_ascii=False, allow_nan=False))


def _times(operation: Fields) -> list[int]:
    return [operation[key] for key in ("issued_ns", "waited_ns", "done_ns") if operation.get(key)]


def _names(rank: int) -> list[Event]:
    about = {"ph": "M", "pid": rank, "tid": _MARKS_TRACK}
    return [
        {**about, "name": "process_name", "args": {"name": f"rank {rank}"}},
        {**about, "name": "process_sort_index", "args": {"sort_index": rank}},
        {**about, "name": "thread_name", "args": {"name": "program"}},
    ]


def _span(rank: int, track: int, name: str, category: str, begin_us: float, end_us: float, args: Event) -> Event:
    duration = max(end_us - begin_us, 0.001)
    where = {"pid": rank, "tid": track, "ts": begin_us, "dur": duration}
    return {"ph": "X", "name": name, "cat": category, **where, "args": args}


def _us(at_ns: int, start: int) -> float:
    return (at_ns - start) / 1000


def _marks(rank: int, marks: Sequence[Fields], start: int, end: int) -> Iterable[Event]:
    """Pair begins with their ends (innermost first); a begin without an end lasts to the end of the trace."""
    open_spans: dict[str, list[Fields]] = defaultdict(list)

    def span(begin: Fields, end_ns: int) -> Event:
        name = str(begin["name"]).removesuffix("-begin")
        args = {"detail": safe(begin.get("detail", ""))}
        return _span(rank, _MARKS_TRACK, safe(name), "mark", _us(begin["at_ns"], start), _us(end_ns, start), args)

    for mark in sorted(marks, key=lambda mark: mark["at_ns"]):
        name = str(mark["name"])
        stem = name.removesuffix("-end")
        if name.endswith("-begin"):
            open_spans[name.removesuffix("-begin")].append(mark)
        elif stem != name and open_spans[stem]:
            yield span(open_spans[stem].pop(), mark["at_ns"])
        else:
            at = {"pid": rank, "tid": _MARKS_TRACK, "ts": _us(mark["at_ns"], start), "s": "t"}
            yield {"ph": "i", "name": safe(name), "cat": "mark", **at, "args": {"detail": safe(mark.get("detail", ""))}}
    for left_open in open_spans.values():
        for begin in left_open:
            yield span(begin, end)


def _operations(rank: int, operations: Sequence[Fields], start: int, end: int) -> Iterable[Event]:
    lanes: list[int] = []  # when each lane is free again
    for operation in sorted(operations, key=lambda op: (op["issued_ns"], op["seq"])):
        issued, waited = operation["issued_ns"], operation.get("waited_ns", 0)
        never = not operation.get("done_ns")
        done = end if never else operation["done_ns"]
        lane = next((index for index, free in enumerate(lanes) if free <= issued), len(lanes))
        if lane == len(lanes):
            lanes.append(0)
            name = "communication" if lane == 0 else f"communication {lane + 1}"
            yield {"ph": "M", "pid": rank, "tid": lane + 1, "name": "thread_name", "args": {"name": name}}
        lanes[lane] = max(done, issued + 1)
        label = f"{operation['kind']} #{operation['group_seq']}" + (" (never completed)" if never else "")
        begin_us, end_us = _us(issued, start), _us(done, start)
        yield _span(rank, lane + 1, label, str(operation["kind"]), begin_us, end_us, _about(operation))
        if waited and issued <= waited < done:
            yield _span(rank, lane + 1, "wait", "wait", _us(waited, start), end_us, {})


def _about(operation: Fields) -> Event:
    shown = ("group", "ranks", "dtype", "shape", "num_bytes", "reduce_op", "peer", "root", "tag", "where")
    return {key: _value(operation[key]) for key in shown if operation.get(key) not in (None, "", -1)}


def _value(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    return value if isinstance(value, (bool, int)) else safe(value)


def _arrows(operations: Mapping[int, Sequence[Fields]], start: int) -> Iterable[Event]:
    """Match the n-th send with the n-th receive of each (group, sender, receiver, tag), as gloo does."""
    sends: dict[tuple[Any, ...], list[Fields]] = defaultdict(list)
    receives: dict[tuple[Any, ...], list[Fields]] = defaultdict(list)
    for rank, seen in operations.items():
        for operation in sorted(seen, key=lambda op: op["seq"]):
            stream = (operation.get("group", ""), operation.get("tag", 0))
            if operation["kind"] == "send":
                sends[*stream, rank, operation["peer"]].append(operation)
            elif operation["kind"] == "recv":
                receives[*stream, operation["peer"], rank].append(operation)
    number = 0
    for key, sent in sends.items():
        *_, source, destination = key
        for send, receive in zip(sent, receives.get(key, ()), strict=False):
            number += 1
            arrow = {"name": "message", "cat": "message", "id": number, "tid": 1}
            yield {"ph": "s", **arrow, "pid": source, "ts": _us(send["issued_ns"], start)}
            arrived = receive.get("done_ns") or receive["issued_ns"]
            yield {"ph": "f", "bp": "e", **arrow, "pid": destination, "ts": _us(arrived, start)}
