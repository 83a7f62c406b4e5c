from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fixtures.witness.compare import agreement, in_window
from fixtures.witness.gloo import traffic
from fixtures.world.outcome import Mark, Operation
from tests.witness import lying, traced

if TYPE_CHECKING:
    from fixtures.world.pool import WorldPool


def operation(**fields: Any) -> Operation:
    """An all_reduce of four floats in a group of two, but for what is given."""
    known: dict[str, Any] = {
        "seq": 0,
        "kind": "all_reduce",
        "group": "default",
        "ranks": (0, 1),
        "group_seq": 0,
        "dtype": "float32",
        "shape": (4,),
        "num_bytes": 16,
        "reduce_op": "SUM",
        "where": "mine/ddp.py:1",
    }
    return Operation(**(known | fields))


def message(kind: str, peer: int, **fields: Any) -> Operation:
    return operation(kind=kind, peer=peer, reduce_op="", **fields)


@pytest.mark.parametrize(
    ("program", "aspect"),
    [
        (lying.swapped_order, "order"),
        (lying.sum_against_max, "reduce_op"),
        (lying.same_width, "dtype"),
        (lying.message_of_same_width, "dtype"),
        (lying.turned, "shape"),
    ],
)
def test_disagreements_that_gloo_completes_in_silence_are_found(worlds: WorldPool, program: Any, aspect: str) -> None:
    outcomes = worlds.world(2).run(program)
    assert outcomes.all_returned, outcomes.describe()
    (finding,) = agreement([outcome.operations for outcome in outcomes])
    assert finding.aspect == aspect
    assert set(finding.seen) == {0, 1}
    assert finding.seen[0] != finding.seen[1]


@pytest.mark.parametrize("program", [traced.collectives, traced.messages, traced.subgroup, traced.batched_ring])
def test_honest_programs_leave_no_findings(worlds: WorldPool, program: Any) -> None:
    outcomes = worlds.world(3).run(program)
    assert outcomes.all_returned, outcomes.describe()
    assert agreement([outcome.operations for outcome in outcomes]) == []


@pytest.mark.parametrize(
    ("aspect", "other"),
    [
        ("kind", {"kind": "broadcast", "reduce_op": "", "root": 0}),
        ("reduce_op", {"reduce_op": "MAX"}),
        ("dtype", {"dtype": "int32"}),
        ("length", {"num_bytes": 32, "shape": (8,)}),
        ("shape", {"shape": (2, 2)}),
    ],
)
def test_each_aspect_of_an_operation_is_compared(aspect: str, other: dict[str, Any]) -> None:
    (finding,) = agreement([[operation()], [operation(**other)]])
    assert finding.aspect == aspect


def test_ranks_with_different_roots_are_found() -> None:
    traces = [[operation(kind="broadcast", reduce_op="", root=root)] for root in (0, 1)]
    (finding,) = agreement(traces)
    assert finding.aspect == "root"
    assert "root 0" in finding.seen[0]
    assert "root 1" in finding.seen[1]


def test_a_collective_that_one_rank_never_issued_is_missing_there() -> None:
    (finding,) = agreement([[operation(), operation(group_seq=1)], [operation()]])
    assert finding.aspect == "missing"
    assert finding.group_seq == 1
    assert "rank 1" in finding.sentence


def test_a_sentence_names_ranks_calls_and_lines() -> None:
    traces = [[operation()], [operation(reduce_op="MAX", where="mine/ddp.py:9")]]
    (finding,) = agreement(traces)
    assert finding.sentence == (
        "operation #0 in group default, reduce_op: rank 0: all_reduce SUM of float32(4) at mine/ddp.py:1; "
        "rank 1: all_reduce MAX of float32(4) at mine/ddp.py:9. "
        "Gloo reduces each part with the operation of the rank that holds it and says nothing."
    )


def test_turns_at_being_the_root_are_no_swap() -> None:
    """Each rank calls from one line as root and from another as receiver: different lines, the same operations."""
    lines = {True: "mine.py:1", False: "mine.py:2"}
    traces = [
        [operation(kind="broadcast", reduce_op="", root=root, where=lines[root == rank]) for root in (0, 1)]
        for rank in (0, 1)
    ]
    assert agreement(traces) == []


def test_lists_and_flat_tensors_are_the_same_gather() -> None:
    traces = [[operation(kind="all_gather", reduce_op="", shape=shape)] for shape in ((2, 2), (4,))]
    assert agreement(traces) == []


def test_groups_are_compared_by_themselves() -> None:
    pair, everyone = {"group": "pair", "ranks": (0, 1)}, {"group": "default", "ranks": (0, 1, 2)}
    first, second = operation(**pair), operation(**everyone)
    assert agreement([[first, second], [second, first], [second]]) == []


def test_messages_are_compared_in_order_within_their_tag() -> None:
    sent = [message("send", 1, tag=tag, num_bytes=size) for tag, size in ((5, 16), (6, 32))]
    received = [message("recv", 0, tag=tag, num_bytes=size) for tag, size in ((6, 32), (5, 16))]
    assert agreement([sent, received]) == []


def test_a_message_that_nobody_takes_is_found() -> None:
    (finding,) = agreement([[message("send", 1)], []])
    assert finding.aspect == "missing"
    assert "No receive" in finding.sentence


def test_operations_of_a_window_are_those_issued_between_its_edges() -> None:
    operations = [operation(seq=i, issued_ns=at) for i, at in enumerate((5, 15, 25, 35))]
    marks = [
        Mark(name=name, at_ns=at, detail="step")
        for name, at in (("window-begin", 10), ("window-end", 20), ("window-begin", 30), ("window-end", 40))
    ]
    assert [op.seq for op in in_window(operations, marks, "step")] == [1, 3]
    assert in_window(operations, marks, "another") == ()


@pytest.mark.parametrize("world_size", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("num_bytes", [4, 64, 4000, 1 << 20, (1 << 24) + 4])
def test_what_all_ranks_of_a_ring_send_is_2_t_n_minus_1_and_each_message_is_received(
    world_size: int, num_bytes: int
) -> None:
    op = operation(num_bytes=num_bytes, ranks=tuple(range(world_size)))
    total = [traffic(op, rank)[0] for rank in range(world_size)]
    assert sum(t.payload_bytes for t in total) == 2 * num_bytes * (world_size - 1)
    assert sum(t.sends for t in total) == sum(t.recvs for t in total)


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "gather", "scatter", "all_gather", "all_to_all", "barrier"])
@pytest.mark.parametrize("world_size", [2, 3, 5, 8])
def test_every_message_of_the_model_has_a_sender_and_a_receiver(kind: str, world_size: int) -> None:
    op = operation(kind=kind, num_bytes=840, root=1, ranks=tuple(range(world_size)))
    total = [traffic(op, rank)[0] for rank in range(world_size)]
    assert sum(t.sends for t in total) == sum(t.recvs for t in total) > 0


def test_a_group_of_one_sends_nothing() -> None:
    assert [t.wire_bytes for t in traffic(operation(ranks=(3,)), 3)] == [0]
