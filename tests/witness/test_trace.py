from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.witness import process_group
from fixtures.witness.trace import Entry, Recorder
from fixtures.world.outcome import Ending, Operation, Outcomes
from tests.witness import lying, traced
from tests.witness.traced import NUMEL

if TYPE_CHECKING:
    from fixtures.world.pool import WorldPool

T = 4 * NUMEL  # bytes of one tensor of the programs
HERE = "witness/traced.py"

# kind, bytes, shape, reduce op, root: on three ranks
EACH_COLLECTIVE = [
    ("all_reduce", T, (NUMEL,), "MAX", -1),
    ("broadcast", T, (NUMEL,), "", 1),
    ("reduce", T, (NUMEL,), "PRODUCT", 1),
    ("all_gather", 3 * T, (3, NUMEL), "", -1),
    ("all_gather", 3 * T, (3 * NUMEL,), "", -1),
    ("reduce_scatter", 3 * T, (3, NUMEL), "SUM", -1),
    ("reduce_scatter", 3 * T, (3 * NUMEL,), "SUM", -1),
    ("gather", 3 * T, (3, NUMEL), "", 1),
    ("scatter", 3 * T, (3, NUMEL), "", 1),
    ("all_to_all", 3 * T, (3, NUMEL), "", -1),
    ("all_to_all", 3 * T, (3 * NUMEL,), "", -1),
    ("barrier", 0, (), "", -1),
]


def traces(outcomes: Outcomes) -> list[tuple[Operation, ...]]:
    assert outcomes.all_returned, outcomes.describe()
    return [outcome.operations for outcome in outcomes]


def test_each_collective_is_one_operation_with_its_kind_bytes_shape_reduce_op_and_root(worlds: WorldPool) -> None:
    for trace in traces(worlds.world(3).run(traced.collectives)):
        assert [(op.kind, op.num_bytes, op.shape, op.reduce_op, op.root) for op in trace] == EACH_COLLECTIVE


def test_operations_are_numbered_and_say_when_they_were_issued_waited_for_and_done(worlds: WorldPool) -> None:
    for trace in traces(worlds.world(3).run(traced.collectives)):
        assert [op.seq for op in trace] == list(range(len(trace)))
        assert [op.group_seq for op in trace] == list(range(len(trace)))
        assert {(op.group, op.ranks) for op in trace} == {("default", (0, 1, 2))}
        times = [time for op in trace for time in (op.issued_ns, op.waited_ns, op.done_ns)]
        assert times[0] > 0
        assert times == sorted(times)


def test_the_call_site_is_the_line_of_the_program_and_not_of_torch(worlds: WorldPool) -> None:
    for trace in traces(worlds.world(3).run(traced.collectives)):
        files = {op.where.rpartition(":")[0] for op in trace}
        lines = [int(op.where.rpartition(":")[2]) for op in trace]
        first = traced.collectives.__code__.co_firstlineno
        assert files == {HERE}
        assert lines == list(range(first + 3, first + 3 + len(trace)))


def test_arguments_by_keyword_and_the_short_forms_are_understood(worlds: WorldPool) -> None:
    for trace in traces(worlds.world(3).run(traced.by_keyword)):
        assert [(op.kind, op.reduce_op, op.root) for op in trace] == [
            ("all_reduce", "SUM", -1),
            ("all_reduce", "MIN", -1),
            ("broadcast", "", 1),
            ("reduce", "MAX", 1),
        ]


def test_dtypes_have_their_names_and_widths(worlds: WorldPool) -> None:
    for trace in traces(worlds.world(3).run(traced.dtypes)):
        assert [(op.dtype, op.num_bytes // NUMEL) for op in trace] == [
            ("float64", 8),
            ("bfloat16", 2),
            ("int64", 8),
            ("uint8", 1),
            ("bool", 1),
        ]


def test_messages_name_peer_and_tag_and_are_numbered_for_each_stream(worlds: WorldPool) -> None:
    sender, receiver, bystander = traces(worlds.world(3).run(traced.messages))
    assert [(op.kind, op.peer, op.tag, op.group_seq, op.num_bytes) for op in sender] == [
        ("send", 1, 7, 0, T),
        ("send", 1, 0, 0, T),
        ("send", 1, 0, 1, T),
    ]
    assert [(op.kind, op.peer, op.tag, op.num_bytes) for op in receiver] == [
        ("recv", 0, 7, T),
        ("recv", 0, 0, T),
        ("recv", 0, 0, T),  # asked for anybody; the trace says who it was
    ]
    assert bystander == ()


def test_batched_messages_are_seen_one_by_one(worlds: WorldPool) -> None:
    for rank, trace in enumerate(traces(worlds.world(3).run(traced.batched_ring))):
        assert [(op.kind, op.peer) for op in trace] == [("send", (rank + 1) % 3), ("recv", (rank - 1) % 3)]


def test_coalesced_all_reduces_are_one_operation_of_all_their_bytes(worlds: WorldPool) -> None:
    for trace in traces(worlds.world(3).run(traced.coalesced)):
        assert [(op.kind, op.num_bytes, op.shape) for op in trace] == [("all_reduce", T + 12, (NUMEL, 3))]


def test_functional_collectives_that_call_from_cpp_are_seen(worlds: WorldPool) -> None:
    outcomes = worlds.world(3).run(traced.functional_collectives)
    assert outcomes.values == [[3.0 * NUMEL, 3.0 * NUMEL]] * 3
    for trace in traces(outcomes):
        assert [(op.kind, op.num_bytes) for op in trace] == [("all_reduce", T), ("all_gather", 3 * T)]


def test_subgroups_have_a_name_of_their_own_and_global_ranks_for_root_and_peer(worlds: WorldPool) -> None:
    outcomes = worlds.world(3).run(traced.subgroup)
    assert outcomes.values == [1, 2, 2]
    outsider, one, two = traces(outcomes)
    assert outsider == ()
    assert [(op.kind, op.ranks, op.root, op.peer) for op in one] == [
        ("new_group", (1, 2), -1, -1),
        ("all_reduce", (1, 2), -1, -1),
        ("broadcast", (1, 2), 2, -1),
        ("recv", (1, 2), -1, 2),
    ]
    assert [(op.kind, op.peer) for op in two][-1] == ("send", 1)
    assert [op.group_seq for op in one] == [0, 0, 1, 0]
    names = {op.group for op in (*one, *two)}
    assert len(names) == 1
    assert names != {"default"}


def test_the_groups_of_a_device_mesh_are_traced(worlds: WorldPool) -> None:
    for rank, outcome in enumerate(worlds.world(4).run(traced.device_mesh)):
        made = outcome.marks[0].at_ns
        assert [(op.kind, op.ranks) for op in outcome.operations if op.issued_ns > made] == [
            ("all_reduce", (0, 1) if rank < 2 else (2, 3))
        ]


def test_a_group_that_only_some_ranks_make_is_recorded_as_a_wait(worlds: WorldPool) -> None:
    waiting, other, _ = worlds.world(3).run(traced.lonely_subgroup, deadline_s=5.0)
    assert waiting.ending is Ending.HUNG
    assert "new_group" in waiting.hang.call
    assert other.ending is Ending.RETURNED


def test_an_asynchronous_operation_is_waited_for_after_its_issue(worlds: WorldPool) -> None:
    for outcome in worlds.world(3).run(traced.asynchronous):
        (op,) = outcome.operations
        issued, waited = (mark.at_ns for mark in outcome.marks)
        assert op.issued_ns < issued < op.waited_ns < waited
        assert op.issued_ns < op.done_ns < waited  # a mark may have seen it complete before anybody waited


def test_an_operation_found_complete_by_asking_is_done_without_a_wait(worlds: WorldPool) -> None:
    for outcome in worlds.world(3).run(traced.polled):
        (op,) = outcome.operations
        assert op.waited_ns == 0
        assert op.issued_ns < op.done_ns < outcome.marks[0].at_ns


def test_an_operation_that_nobody_waits_for_has_no_time_of_waiting(worlds: WorldPool) -> None:
    for trace in traces(worlds.world(3).run(traced.forgotten)):
        assert [(op.kind, op.waited_ns > 0) for op in trace] == [
            ("all_reduce", True),
            ("all_reduce", False),
            ("barrier", True),
        ]


def test_an_operation_that_the_backend_refuses_is_never_done(worlds: WorldPool) -> None:
    outcomes = worlds.world(3).run(traced.refused)
    assert all(outcomes.values)
    assert {op.done_ns for trace in traces(outcomes) for op in trace} <= {0}


def test_sparse_tensors_weigh_their_indices_and_values(worlds: WorldPool) -> None:
    outcomes = worlds.world(2).run(traced.sparse)
    assert outcomes.values == [[2.0, 0.0, 4.0, 0.0]] * 2
    for trace in traces(outcomes):
        assert [(op.kind, op.num_bytes) for op in trace] == [("all_reduce", 2 * 8 + 2 * 4)]


def test_bad_arguments_meet_the_backend_s_own_complaint(worlds: WorldPool) -> None:
    outcomes = worlds.world(2).run(traced.bad_root)
    assert all("root" in value for value in outcomes.values)
    assert [(op.kind, op.done_ns) for trace in traces(outcomes) for op in trace] == [("broadcast", 0)] * 2


# parameters of the three layers of 64 x 64 with bias
LAYER_BYTES = 4 * (64 * 64 + 64)


def test_the_reducer_of_ddp_is_seen_with_its_buckets(worlds: WorldPool) -> None:
    outcomes = worlds.world(3).run(traced.ddp_steps, num_steps=3, bucket_cap_mb=LAYER_BYTES / 2**20)
    values = outcomes.values
    assert values[0] == values[1] == values[2]
    for outcome in outcomes:
        *_, before, after = [mark.at_ns for mark in outcome.marks if mark.name == "step"]
        third = [op for op in outcome.operations if before < op.issued_ns < after]
        assert [(op.kind, op.reduce_op, op.num_bytes) for op in third] == [("all_reduce", "SUM", LAYER_BYTES)] * 3
        assert all(op.issued_ns < op.done_ns for op in third)


def test_ddp_broadcasts_its_parameters_when_it_is_made(worlds: WorldPool) -> None:
    for outcome in worlds.world(3).run(traced.ddp_steps, num_steps=1, bucket_cap_mb=25):
        made = outcome.marks[0].at_ns
        sent = [op for op in outcome.operations if op.issued_ns < made and op.kind == "broadcast"]
        assert 3 * LAYER_BYTES in {op.num_bytes for op in sent}
        assert {op.root for op in sent} == {0}


def test_fully_shard_gathers_and_scatters_through_the_trace(worlds: WorldPool) -> None:
    for trace in traces(worlds.world(2).run(traced.fsdp_step)):
        kinds = [op.kind for op in trace if op.kind != "new_group"]
        assert kinds.count("reduce_scatter") == 3
        assert 3 <= kinds.count("all_gather") <= 6
        assert {op.num_bytes for op in trace if op.kind == "all_gather"} == {LAYER_BYTES}


def test_a_patched_all_reduce_does_not_fool_the_trace(worlds: WorldPool) -> None:
    outcomes = worlds.world(3).run(lying.patched_all_reduce)
    assert outcomes.values == [1, 1, 1]  # what the liar counts
    assert [len(trace) for trace in traces(outcomes)] == [3, 3, 3]


def test_the_backend_taken_out_of_its_group_is_counted_as_unseen(worlds: WorldPool) -> None:
    for trace in traces(worlds.world(3).run(lying.one_past_the_trace)):
        assert [op.kind for op in trace] == ["all_reduce", "barrier", "unseen", "unseen"]


@pytest.mark.parametrize("world_size", [2, 3])
def test_nothing_that_goes_through_the_group_is_unseen(worlds: WorldPool, world_size: int) -> None:
    for _ in range(2):
        for trace in traces(worlds.world(world_size).run(traced.everything)):
            assert "unseen" not in {op.kind for op in trace}


def test_operations_of_several_threads_are_all_seen_and_numbered_in_order(worlds: WorldPool) -> None:
    for trace in traces(worlds.world(2).run(traced.in_three_threads, num_operations=100)):
        kinds = [op.kind for op in trace]
        assert (kinds.count("all_reduce"), kinds.count("unseen")) == (300, 0)
        assert sorted(op.seq for op in trace) == [op.seq for op in trace]


def test_a_world_without_trace_records_nothing(worlds: WorldPool) -> None:
    assert traces(worlds.world(2, trace=False).run(traced.collectives)) == [(), ()]


class Diary:
    """A sink that writes down what it is told."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, int]] = []

    def issued(self, op_index: int, operation: Entry) -> None:
        self.entries.append((operation.kind, op_index))

    def waiting(self, op_index: int) -> None:
        self.entries.append(("waiting", op_index))

    def done(self, op_index: int) -> None:
        self.entries.append(("done", op_index))

    def mark(self, name: str, detail: str = "") -> None:
        self.entries.append((name, -1))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_a_sink_hears_issue_wait_and_end_once_each(recorder: Recorder) -> None:
    diary = Diary()
    recorder.add_sink(diary)
    entry = recorder.issue("barrier", "default", (0, 1))
    recorder.waiting(entry)
    recorder.done(entry)
    recorder.done(entry)
    assert diary.entries == [("barrier", entry.index), ("waiting", entry.index), ("done", entry.index)]


def test_an_operation_from_before_a_reset_still_ends_for_the_sink_and_stays_out_of_the_trace(
    recorder: Recorder,
) -> None:
    diary = Diary()
    recorder.add_sink(diary)
    old = recorder.issue("barrier", "default", (0, 1))
    recorder.reset()
    new = recorder.issue("all_reduce", "default", (0, 1))
    recorder.done(old)
    assert [(op.kind, op.seq, op.group_seq, op.done_ns) for op in recorder.operations()] == [("all_reduce", 0, 0, 0)]
    assert diary.entries == [("barrier", old.index), ("all_reduce", new.index), ("done", old.index)]
    assert old.index < new.index


def test_a_sink_hears_of_marks(recorder: Recorder) -> None:
    diary = Diary()
    recorder.add_sink(diary)
    recorder.mark("backward-end")
    assert diary.entries == [("backward-end", -1)]


def test_a_failed_operation_ends_for_the_sink_and_is_never_done(recorder: Recorder) -> None:
    diary = Diary()
    recorder.add_sink(diary)
    entry = recorder.issue("barrier", "default", (0, 1))
    recorder.done(entry, failed=True)
    assert diary.entries[-1] == ("done", entry.index)
    assert recorder.operations()[0].done_ns == 0


def test_completion_is_asked_for_at_every_mark(recorder: Recorder) -> None:
    entry = recorder.issue("all_reduce", "default", (0, 1))
    answers = iter([False, True])
    recorder.watch(entry, lambda: next(answers))
    recorder.mark("too early")
    assert entry.done_ns == 0
    recorder.mark("late enough")
    assert entry.done_ns > 0


def test_taking_the_tracing_off_restores_torch(recorder: Recorder) -> None:
    before = process_group.c10d._new_process_group_helper
    process_group.install(recorder)()
    assert process_group.c10d._new_process_group_helper is before
