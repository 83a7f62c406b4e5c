"""Which operations of a step are gradient traffic, and which sums of them are an all-reduce; on made-up traces."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.strategies.ddp_model import SHAPES
from conformance.strategies.ddp_traffic import Step, blocked, fault_in, inside_no_sync, is_note, steps_of
from conformance.strategies.programs import window
from fixtures.world.outcome import Ending, Mark, Operation, Outcome
from impls.mesh import HEADER_BYTES, HEADER_TAG

TOTAL = 1200  # bytes of the gradients
RANKS = (0, 1, 2)


def _operation(kind: str, num_bytes: int, at: int = 50, dtype: str = "float32", **more: Any) -> Operation:
    return Operation(
        seq=0,
        kind=kind,
        group="0",
        group_seq=0,
        dtype=dtype,
        shape=(num_bytes // 4,),
        num_bytes=num_bytes,
        issued_ns=at,
        **{"ranks": RANKS, **more},
    )


def _step(*operations: Operation) -> Step:
    return Step(gradients=operations, notes=(), before=(), marks=())


def _outcome(*operations: Operation, marks: tuple[Mark, ...] = ()) -> Outcome:
    value = {"num_parameters": 4, "dtypes": ["float32"]}
    return Outcome(rank=0, ending=Ending.RETURNED, value=value, operations=operations, marks=marks)


@pytest.mark.parametrize(
    "operations",
    [
        [_operation("all_reduce", TOTAL)],
        [_operation("all_reduce", 800), _operation("all_reduce", 400)],
        [_operation("reduce_scatter", TOTAL), _operation("all_gather", TOTAL)],
        [_operation("reduce_scatter", TOTAL + 12), _operation("all_gather", TOTAL + 12)],
        [_operation("send", 400)] * 4 + [_operation("recv", 400)] * 4,
    ],
    ids=["one", "two buckets", "two halves", "padded halves", "a ring"],
)
def test_what_sends_as_much_as_an_all_reduce_is_one(operations: list[Operation]) -> None:
    assert fault_in(_step(*operations), TOTAL, 3) == ""


@pytest.mark.parametrize(
    "flags",
    [[_operation("all_reduce", TOTAL + 16)], [_operation("all_reduce", TOTAL), _operation("all_reduce", 16)]],
    ids=["in the bucket", "beside it"],
)
def test_a_flag_for_each_parameter_may_travel_with_the_gradients(flags: list[Operation]) -> None:
    assert fault_in(_step(*flags), TOTAL, 3, num_parameters=4) == ""
    assert fault_in(_step(*flags), TOTAL, 3, num_parameters=1) != ""


@pytest.mark.parametrize(
    ("operations", "said"),
    [
        ([], "no operation"),
        ([_operation("all_reduce", TOTAL - 4)], "the gradients have"),
        ([_operation("all_reduce", 2 * TOTAL)], "the gradients have"),
        ([_operation("all_reduce", TOTAL, ranks=(0, 1))], "does not span"),
        ([_operation("reduce", TOTAL), _operation("broadcast", TOTAL)], "broadcast, reduce"),
        ([_operation("all_gather", 3 * TOTAL)], "all_gather"),
        ([_operation("reduce_scatter", TOTAL), _operation("all_gather", 3 * TOTAL)], "gathered"),
        ([_operation("send", TOTAL)] * 2, "sends at most"),
    ],
    ids=["nothing", "too little", "twice", "half the ranks", "a star", "all of all", "gathers all", "sends all"],
)
def test_what_sends_something_else_is_told(operations: list[Operation], said: str) -> None:
    assert said in fault_in(_step(*operations), TOTAL, 3)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (_operation("broadcast", 40, dtype="int32"), True),
        (_operation("all_reduce", 4, dtype="uint8"), True),
        (_operation("all_reduce", 40), False),  # gradients are small here too
        (_operation("broadcast", 4000, dtype="int32"), False),
        (_operation("send", HEADER_BYTES, dtype="int64", tag=HEADER_TAG), True),
        (_operation("send", 10 * HEADER_BYTES, dtype="float32", tag=HEADER_TAG), False),
    ],
)
def test_notes_are_small_and_of_another_dtype_than_gradients(operation: Operation, expected: bool) -> None:
    assert is_note(operation, _outcome(operation)) is expected


def _mark(name: str, at: int, detail: str = "") -> Mark:
    return Mark(name=name, at_ns=at, detail=detail)


def test_a_step_parts_what_comes_before_backward_from_gradient_traffic() -> None:
    buffers, gradients = _operation("broadcast", 64, at=15), _operation("all_reduce", TOTAL, at=30)
    layout, later = _operation("broadcast", 16, at=32, dtype="int32"), _operation("all_reduce", TOTAL, at=99)
    marks = (
        _mark("step-begin", 10),
        _mark("window-begin", 20, window(0)),
        _mark("window-end", 40, window(0)),
        _mark("step-end", 50),
    )
    (step,) = steps_of(_outcome(buffers, gradients, layout, later, marks=marks))
    assert (step.before, step.gradients, step.notes) == ((buffers,), (gradients,), (layout,))


def test_operations_inside_no_sync_are_found_by_the_marks_around_it() -> None:
    early, late = _operation("all_reduce", TOTAL, at=15), _operation("all_reduce", TOTAL, at=30)
    marks = (_mark("no-sync-begin", 10), _mark("no-sync-end", 20))
    assert inside_no_sync(_outcome(early, late, marks=marks)) == [early]


def test_an_operation_blocks_when_nothing_is_computed_between_its_issue_and_the_wait() -> None:
    marks = [_mark("weight-gradient", 40), _mark("weight-gradient", 60)]
    assert blocked(_operation("all_reduce", TOTAL, at=50, waited_ns=51), marks)
    assert not blocked(_operation("all_reduce", TOTAL, at=50, waited_ns=70), marks)
    assert not blocked(_operation("all_reduce", TOTAL, at=50), marks)


def test_memory_limits_where_backward_hides_the_all_reduce_and_communication_does_elsewhere() -> None:
    assert [shape.main_cost(16.0) for shape in SHAPES] == ["memory", "communication"]
    assert [shape.backward_s() > shape.all_reduce_s(4.0) for shape in SHAPES] == [True, False]
