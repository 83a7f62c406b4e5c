"""Schedules in the forms that people return them in, all read as the same; and what is told of those that are none."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Callable, Iterator
from enum import Enum, IntEnum, auto
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

from impls.reference.pipeline.actions import Action, Schedule
from impls.reference.pipeline.names import named
from impls.reference.pipeline.simulate import simulate
from impls.schedule_forms import ScheduleError, read_schedule

N, M = 3, 4
SIZES = {"gpipe": (3, 4), "1f1b": (3, 4), "zb_h1": (3, 4), "zbv": (2, 4), "dualpipe": (4, 8), "dualpipev": (2, 5)}


class Op(Enum):
    FORWARD = auto()
    BACKWARD_INPUT = auto()
    BACKWARD_WEIGHT = auto()
    FULL_BACKWARD = auto()


class Code(IntEnum):
    F = 0
    B = 1


OPS = {"F": Op.FORWARD, "B": Op.FULL_BACKWARD, "I": Op.BACKWARD_INPUT, "W": Op.BACKWARD_WEIGHT}
WORDS = {"F": "forward", "B": "bwd", "I": "Input Grad", "W": "BACKWARD_WEIGHT"}
Task = namedtuple("Task", "op stage_id mb")

Write = Callable[[Action], Any]


def _single(action: Action, write: Write) -> Any:
    return tuple(map(write, action.parts)) if action.beside else write(action)


ENTRIES: dict[str, Write] = {
    "texts": str,
    "text pairs": lambda a: f"{a.beside} & {a.parts[0]}" if a.beside else f"{a.kind}{a.stage}_{a.microbatch}",
    "tuples": lambda a: _single(a, lambda p: (str(p.kind), p.stage, p.microbatch)),
    "lists": lambda a: _single(a, lambda p: [str(p.kind), p.stage, p.microbatch]),
    "kind last": lambda a: _single(a, lambda p: (p.stage, p.microbatch, p.kind)),
    "spelled out": lambda a: _single(a, lambda p: (WORDS[p.kind], p.stage, p.microbatch)),
    "enums": lambda a: _single(a, lambda p: (OPS[p.kind], p.stage, p.microbatch)),
    "numpy numbers": lambda a: (
        _single(a, lambda p: ("F", np.int64(p.stage), np.int32(p.microbatch)))
        if a.kind == "F" and not a.beside
        else str(a)
    ),
    "torch numbers": lambda a: _single(a, lambda p: (p.kind, torch.tensor(p.stage), torch.tensor(p.microbatch))),
    "named tuples": lambda a: _single(a, lambda p: Task(WORDS[p.kind], p.stage, p.microbatch)),
    "objects": lambda a: _single(a, lambda p: SimpleNamespace(phase=p.kind, stage=p.stage, micro_batch=p.microbatch)),
    "mappings": lambda a: _single(a, lambda p: {"type": p.kind, "stage_index": p.stage, "microbatch": p.microbatch}),
    "torch's texts": lambda a: "&".join(f"{p.stage}{p.kind}{p.microbatch}" for p in a.parts),
}


def _same(value: Any, ours: Schedule, name: str, num_microbatches: int) -> None:
    found = read_schedule(value, name, len(ours), num_microbatches)
    assert str(found) == str(ours)
    assert found.placement == ours.placement


@pytest.mark.parametrize("write", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize("name", SIZES)
def test_entries_of_every_form_are_read(name: str, write: Write) -> None:
    ours = named(name, *SIZES[name])
    _same([[write(action) for action in actions] for actions in ours], ours, name, SIZES[name][1])


CONTAINERS: dict[str, Callable[[Schedule], Any]] = {
    "ours": lambda ours: ours,
    "a dict by rank": lambda ours: {str(rank): actions for rank, actions in reversed(list(enumerate(ours)))},
    "generators": lambda ours: (map(str, actions) for actions in ours),
    "one text per rank": lambda ours: [" ".join(map(str, actions)) for actions in ours],
    "closures": lambda ours: [lambda actions=actions: iter(actions) for actions in ours],
    "a function of the rank": lambda ours: lambda rank: ours[rank],
    "with bubbles": lambda ours: [[None, *actions, "-", ("idle", None, None)] for actions in ours],
    "with sends": lambda ours: [[each for a in actions for each in (a, ("SEND_F", 0, 1))] for actions in ours],
    "an array of objects": lambda ours: np.array([[*map(str, actions)] for actions in ours], dtype=object),
}


@pytest.mark.parametrize("contain", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("name", ["1f1b", "zbv"])
def test_lists_of_every_form_are_read(name: str, contain: Callable[[Schedule], Any]) -> None:
    ours = named(name, *SIZES[name])
    _same(contain(ours), ours, name, SIZES[name][1])


def _timed(ours: Schedule) -> list[tuple[int, Action]]:
    """(begin, part) of everything, in order of time."""
    timeline = simulate(ours)
    spans = [
        (int(begin), part) for rank in range(len(ours)) for a, begin, _ in timeline.spans(rank) for part in a.parts
    ]
    return sorted(spans, key=lambda span: span[0])


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb_h1", "zbv"])
def test_flat_list_of_the_lesson_is_dealt_out_by_stage_in_order_of_cycles(name: str) -> None:
    ours = named(name, *SIZES[name])
    flat = [(cycle, part.stage, part.microbatch, str(part.kind)) for cycle, part in _timed(ours)]
    _same(flat[::-1], ours, name, SIZES[name][1])
    _same(iter(flat), ours, name, SIZES[name][1])


@pytest.mark.parametrize("name", ["dualpipe", "dualpipev"])
def test_what_a_rank_does_in_one_cycle_is_a_pair_in_dualpipe(name: str) -> None:
    ours = named(name, 4, 8)
    timed = _timed(ours)
    flat = [(cycle, part.stage, part.microbatch, str(part.kind)) for cycle, part in timed]
    _same(flat[::-1], ours, name, 8)
    ticks: list[list[Any]] = [[] for _ in range(timed[-1][0] + 1)]
    for cycle, part in timed:
        ticks[cycle].append((part.kind, part.stage, part.microbatch))
    _same(ticks, ours, name, 8)


def test_lists_of_clock_ticks_are_read() -> None:
    ours = named("1f1b", N, M)
    timed = _timed(ours)
    ticks = [[(p.kind, p.stage, p.microbatch) for begin, p in timed if begin == now] for now in range(timed[-1][0] + 1)]
    _same(ticks, ours, "1f1b", M)
    columns = [
        [next((str(p) for p in timed_at if p.stage == rank), None) for rank in range(N)] for timed_at in _at(timed)
    ]
    _same(columns, ours, "1f1b", M)


def _at(timed: list[tuple[int, Action]]) -> Iterator[list[Action]]:
    for _, group in itertools.groupby(timed, key=lambda span: span[0]):
        yield [part for _, part in group]


@pytest.mark.parametrize(
    ("torch_name", "name", "sizes", "num_chunks"),
    [
        ("GPipe", "gpipe", (3, 4), 1),
        ("ZBVZeroBubble", "zbv", (2, 4), 2),
        ("DualPipeV", "dualpipev", (2, 4), 2),
        ("Interleaved1F1B", "interleaved_1f1b", (2, 4), 2),
    ],
)
def test_tables_of_torch_are_read(torch_name: str, name: str, sizes: tuple[int, int], num_chunks: int) -> None:
    table = get_schedule_ops(torch_name, *sizes, num_chunks)
    found = read_schedule(table, name, *sizes)
    assert simulate(found).bubble() == simulate(named(name, *sizes, num_chunks)).bubble()


def test_where_a_rank_has_one_stage_the_microbatch_will_do() -> None:
    ours = named("1f1b", N, M)
    _same([[f"{a.kind}{a.microbatch}" for a in row] for row in ours], ours, "1f1b", M)
    _same([[(a.kind, a.microbatch) for a in row] for row in ours], ours, "1f1b", M)


def test_b_is_the_gradient_of_the_input_where_every_b_has_a_w() -> None:
    ours = named("zb_h1", N, M)
    written = [[str(a).replace("I", "B") for a in row] for row in ours]
    _same(written, ours, "zb_h1", M)
    assert "B" in str(read_schedule(written, "1f1b", N, M))


def test_who_runs_a_stage_has_it() -> None:
    rows = [str(row).replace("rank", "").split(": ")[1].split() for row in str(named("gpipe", 2, 4)).splitlines()]
    turned = read_schedule(rows[::-1], "gpipe", 2, 4)
    assert turned.placement.ranks == ((1, 0),)
    shared = [[a for a in rows[0] if a[-1] in "02"], [*[a for a in rows[0] if a[-1] in "13"], *rows[1]]]
    assert read_schedule(shared, "gpipe", 2, 4).placement.ranks == ((0, 1), (1, 1), (0, 1), (1, 1))


def _with(entry: Any) -> list[list[Any]]:
    rows: list[list[Any]] = [list(map(str, row)) for row in named("1f1b", N, M)]
    rows[1][2] = entry
    return rows


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (_with("X1.2"), "1f1b(3, 4), rank 1, entry 2: 'X1.2' is no action"),
        (_with(("F", 1, "two")), "2 kinds of action"),
        (_with(("F", 1, 1.5)), "the stage or microbatch 1.5 is no whole number"),
        (_with(7), "rank 1, entry 2: 7 is no action"),
        (_with("F1.4"), "F1.4 is of microbatch 4, and there are 0 to 3"),
        (_with("F1000.1"), "of stage 1000, which there is not"),
        (_with("F1.2&F1.3"), "F&F at once"),
        (_with(object()), "is no action"),
        ([["F0.0"]] * 2, "returned 2 lists: expected 3, one for each rank"),
        ([["F0.0", "F0.1", "F0.2"]] * 4, "returned 4 lists: expected 3"),
        ({0: [], 2: []}, "a dict with the keys [0, 2]: expected the ranks 0 to 2"),
        ([], "returned 0 lists"),
        ([[], [], []], "has no actions"),
        (None, "it is None, not a list of actions"),
        ([["F0.0"], 5, ["F2.0"]], "the list of rank 1 is 5"),
        (itertools.repeat("F0.0"), "or no end"),
        ([(0, 5, 0, "F")], "entry 0: no rank follows from F5.0"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(value: Any, told: str) -> None:
    with pytest.raises(ScheduleError) as error:
        read_schedule(value, "1f1b", N, M)
    assert told in str(error.value)


def test_a_microbatch_alone_does_not_say_which_of_two_stages() -> None:
    with pytest.raises(ScheduleError, match="does not say which of the rank's stages"):
        read_schedule([["F0", "B0"], ["F0", "B0"]], "zbv", 2, 4)


def test_kinds_that_are_whole_numbers_only_are_enums_by_name() -> None:
    ours = named("gpipe", N, M)
    _same([[(Code[a.kind], a.stage, a.microbatch) for a in row] for row in ours], ours, "gpipe", M)
