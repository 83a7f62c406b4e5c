"""Who is to blame when nothing runs any more: boards and reports of ranks that have ended, in the ways they do."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from fixtures.doctor.diagnose import diagnose
from fixtures.doctor.evidence import Over
from fixtures.doctor.findings import Diagnosis, Finding, Kind
from fixtures.doctor.traces import common
from fixtures.world.outcome import OPERATION_FIELDS
from tests.doctor.boards import Fallen

BACKWARD, LOG, SAVE = "mine/train.py:30", "mine/train.py:38", "mine/save.py:9"
STACK = 'Current thread 0x01 (most recent call first):\n  File "/home/me/mine/data.py", line 7 in load\n'


def _cause(fallen: Fallen) -> Finding:
    return diagnose(fallen.evidence(), ["train.py"]).findings[0]


def test_a_rank_that_left_is_named_though_its_victims_name_no_operation(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    fallen.same("all_reduce", BACKWARD)
    for rank in (0, 2):
        fallen.issue(rank, "all_reduce", where=BACKWARD, ends=True)  # its future has failed: it is over
        fallen.raised(rank)
    fallen.exits(1, 7, "mine/train.py:12")

    cause = _cause(fallen)
    assert (cause.kind, cause.ranks, cause.where) == (Kind.LEFT, (1,), "mine/train.py:12")
    assert "rank 1 exited with status 7 (sys.exit, mine/train.py:12) without entering it" in cause.sentence
    assert fallen.evidence().own_status == 7  # and not the 1 of its victims
    assert cause.entries[0] == "exception-on-one-rank"


def test_a_collective_of_one_rank_is_named_where_another_was_aborted(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    fallen.same("all_reduce", BACKWARD)
    fallen.issue(0, "all_reduce", where=LOG, shape=(1,), num_bytes=4)
    for rank in (1, 2):
        fallen.issue(rank, "all_reduce", where=BACKWARD)
    fallen.died(1, 6)  # the innocent one
    fallen.raised(0)
    fallen.raised(2)

    cause = _cause(fallen)
    assert (cause.kind, cause.ranks, cause.where) == (Kind.MISMATCH, (0,), LOG)
    assert cause.entries[0] == "collective-in-a-branch"


def test_ranks_that_parted_in_silence_and_broke_later_are_told_where_they_parted(tmp_path: Path) -> None:
    """As in a state dict of shards gathered on rank 0 alone."""
    fallen = Fallen(tmp_path, 4)
    fallen.issue(0, "broadcast", where=SAVE, root=0, ends=True)  # a root is through before anybody has come
    for rank in (1, 2, 3):
        fallen.issue(rank, "all_gather", where=BACKWARD, ends=True)
    for rank in range(4):
        fallen.issue(rank, "all_gather", where=SAVE if rank == 0 else BACKWARD, num_bytes=8 if rank else 16)
    fallen.died(0, 6)
    for rank in (1, 2, 3):
        fallen.raised(rank)

    cause = _cause(fallen)
    assert (cause.ranks, cause.where) == ((0,), SAVE)
    assert "rank 0 called broadcast" in cause.sentence
    assert cause.entries[0] == "collective-in-a-branch"


def test_of_two_ranks_the_one_that_calls_from_a_line_of_its_own_is_to_blame(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 2)
    fallen.same("all_reduce", BACKWARD)
    fallen.issue(0, "all_reduce", where=BACKWARD)
    fallen.issue(1, "all_reduce", where=LOG, shape=(1,), num_bytes=4)
    fallen.died(0, 6)
    fallen.raised(1)
    assert (_cause(fallen).ranks, _cause(fallen).where) == ((1,), LOG)


def test_two_ranks_in_lines_that_are_new_to_both_are_not_told_apart(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 2)
    for rank, where in enumerate((BACKWARD, LOG)):
        fallen.issue(rank, "all_reduce", where=where, shape=(1 + rank,), num_bytes=4 + 4 * rank)
        fallen.raised(rank)
    assert _cause(fallen).ranks == ()


def test_one_call_with_different_sizes_is_about_shapes(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    for rank in range(3):
        fallen.issue(rank, "all_gather", where=SAVE, shape=(5 if rank == 1 else 8,), num_bytes=20 if rank == 1 else 32)
        fallen.raised(rank)
    assert (_cause(fallen).ranks, _cause(fallen).entries) == ((1,), ("shapes-differ",))


def test_parts_of_different_sizes_in_an_uneven_exchange_are_no_parting(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    for rank in range(3):
        fallen.issue(rank, "all_to_all", where=SAVE, shape=(rank,), num_bytes=4 * rank, ends=True)
    for rank in (0, 1):
        fallen.issue(rank, "all_reduce", where=BACKWARD)
        fallen.raised(rank)
    assert (_cause(fallen).kind, _cause(fallen).ranks) == (Kind.LEFT, (2,))
    assert "parted" not in _cause(fallen).sentence


def test_a_rank_that_is_alive_when_the_others_give_up_has_not_left(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    for rank in (0, 1):
        fallen.issue(rank, "all_reduce", where=BACKWARD)
        fallen.raised(rank, "Timed out waiting 2000ms for recv operation to complete")
    fallen.alive(2, STACK)

    cause = _cause(fallen)
    assert (cause.kind, cause.ranks, cause.where) == (Kind.LATE, (2,), "mine/data.py:7")
    assert "rank 2 is still at mine/data.py:7 in load" in cause.sentence
    assert "Ranks 0, 1 gave up" in cause.sentence


def test_a_rank_that_came_when_the_others_had_given_up_is_late(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 2)
    for rank, came_s in ((0, 1.0), (1, 4.5)):
        fallen.issue(rank, "all_reduce", where=BACKWARD)
        row = {"kind": "all_reduce", "group": "default", "group_seq": 0, "issued_ns": int(came_s * 1e9)}
        usual = {"ranks": [0, 1], "shape": [8], "seq": 0, "num_bytes": 32, "dtype": "float32", "where": BACKWARD}
        rows = [[{"root": -1, "peer": -1, "tag": 0, **usual, **row}.get(name, "") for name in OPERATION_FIELDS]]
        fallen.raised(rank, "Timed out" if rank == 0 else LOST_LATER, at_s=3.0 + rank * 2, operations=rows)

    cause = _cause(fallen)
    assert (cause.kind, cause.ranks, cause.where) == (Kind.LATE, (1,), BACKWARD)
    assert "3.5 s after rank 0, which had given up 2.0 s after it came" in cause.sentence


def test_an_extra_call_that_gloo_took_for_the_next_of_the_others_is_found_by_its_line(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    fallen.same("all_reduce", BACKWARD)
    for rank in range(3):
        fallen.issue(rank, "all_reduce", where=LOG if rank == 1 else SAVE, ends=True)
    fallen.issue(1, "all_reduce", where=SAVE, ends=True)
    fallen.raised(1)

    cause = _cause(fallen)
    assert (cause.kind, cause.ranks, cause.where) == (Kind.LEFT, (1,), LOG)
    assert cause.details == (f"rank 1 alone came by {LOG}, for all_reduce #1 of the group",)


def test_the_first_call_of_a_way_of_its_own_is_the_line_to_look_at_though_a_later_one_differs(tmp_path: Path) -> None:
    """As in an evaluation on rank 0 through DDP, which broadcasts its buffers before anything is summed."""
    fallen = Fallen(tmp_path, 3)
    fallen.same("broadcast", BACKWARD, root=0)
    for rank in range(3):
        fallen.issue(rank, "broadcast", root=0, where=BACKWARD if rank else SAVE, ends=True)
        fallen.issue(rank, "all_reduce", where=BACKWARD if rank else LOG, num_bytes=32 if rank else 4)
        fallen.raised(rank)
    assert (_cause(fallen).ranks, _cause(fallen).where) == ((0,), SAVE)


def test_ranks_that_call_one_operation_from_two_branches_have_made_no_detour(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    for rank in range(3):
        fallen.issue(rank, "broadcast", root=0, where=LOG if rank == 0 else SAVE, ends=True)
    for rank in (0, 2):
        fallen.issue(rank, "all_reduce", where=BACKWARD, ends=True)
        fallen.raised(rank)
    assert (_cause(fallen).ranks, _cause(fallen).where) == ((1,), BACKWARD)


def test_a_rank_that_waits_in_the_wake_of_an_error_is_told_with_the_error(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    for rank in (0, 2):
        fallen.issue(rank, "all_reduce", where=BACKWARD)
        fallen.raised(rank)
    fallen.issue(1, "barrier", where=SAVE, waits=True)
    error = {"type": "ValueError", "text": "a broken sample", "file": "/home/me/mine/data.py", "line": 7}
    fallen.alive(1, STACK, handling=error)

    cause = _cause(fallen)
    assert (cause.ranks, cause.where) == ((1,), SAVE)
    assert cause.details == ("rank 1 is there while it handles ValueError at mine/data.py:7: a broken sample",)


def test_a_rank_whose_feeding_thread_has_failed_is_told_with_that_error(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    for rank in (0, 1):
        fallen.issue(rank, "all_reduce", where=BACKWARD)
        fallen.raised(rank)
    error = {"type": "OSError", "text": "disk full", "file": "/home/me/mine/data.py", "line": 9}
    fallen.alive(2, STACK, thread_error=error)
    assert _cause(fallen).details[0] == "a thread of rank 2 had ended with OSError at mine/data.py:9: disk full"
    assert _cause(fallen).entries == ("exception-on-one-rank",)


def test_ranks_that_still_wait_for_one_that_is_gone_are_told_though_nothing_broke(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    for rank in (0, 2):
        fallen.issue(rank, "new_group", group="rendezvous", where=BACKWARD, waits=True)
        fallen.alive(rank, STACK)
    fallen.exits(1, 5, "mine/train.py:3")

    cause = _cause(fallen)
    assert (cause.kind, cause.ranks, cause.where) == (Kind.LEFT, (1,), "mine/train.py:3")
    assert "init_process_group" in cause.sentence
    assert cause.entries == ("exception-on-one-rank",)


def test_other_roots_are_not_about_shapes(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 3)
    for rank in range(3):
        fallen.issue(rank, "broadcast", where=SAVE, root=2 if rank == 2 else 0)
        fallen.raised(rank)
    assert (_cause(fallen).ranks, "shapes-differ" in _cause(fallen).entries) == ((2,), False)


def test_in_a_circle_of_a_message_and_a_collective_the_message_is_to_blame(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 2)
    fallen.issue(0, "barrier", where=SAVE)
    fallen.issue(1, "recv", peer=0, where=LOG)
    fallen.raised(0)
    fallen.named(1, "recv")
    assert (_cause(fallen).ranks, _cause(fallen).where) == ((1,), LOG)


def _over_with(tmp_path: Path, *, done_ns: int) -> Diagnosis:
    """A run that ended well, with an all-reduce of rank 0 alone in a group."""
    fallen = Fallen(tmp_path, 2)
    usual = {"seq": 0, "kind": "all_reduce", "group": "1", "group_seq": 0, "ranks": [0, 1], "shape": [8], "tag": 0}
    row = {**usual, "num_bytes": 32, "peer": -1, "root": -1, "issued_ns": 1, "waited_ns": 1, "done_ns": done_ns}
    fallen.finished(0, [[row.get(name, "") for name in OPERATION_FIELDS]])
    return diagnose(dataclasses.replace(fallen.evidence(), over=Over.ENDED), ["train.py"])


def test_an_operation_that_some_ranks_completed_alone_is_a_mismatch(tmp_path: Path) -> None:
    assert [finding.kind for finding in _over_with(tmp_path, done_ns=2).findings] == [Kind.MISMATCH]


def test_an_operation_that_was_given_up_at_a_time_out_that_the_script_expects_is_a_note(tmp_path: Path) -> None:
    diagnosis = _over_with(tmp_path, done_ns=0)
    assert diagnosis.is_healthy
    assert diagnosis.notes[0].startswith("Given up by who had begun it: ")


LOST_LATER = "Connection reset by peer"


def test_ranks_that_only_lost_each_other_are_told_by_the_first_error(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 2)
    fallen.same("all_reduce", BACKWARD)
    fallen.raised(0, at_s=2.0)
    fallen.raised(1, at_s=1.0)
    assert (_cause(fallen).kind, _cause(fallen).ranks) == (Kind.EXCEPTION, (1,))


def test_a_rank_without_a_report_is_compared_by_its_board(tmp_path: Path) -> None:
    fallen = Fallen(tmp_path, 2)
    fallen.issue(0, "send", peer=1, where=SAVE)
    fallen.same("all_reduce", BACKWARD)
    fallen.died(0, 9)
    reported, from_board = common(fallen.evidence().ranks[::-1])
    assert [(op.kind, op.group_seq, op.where) for op in from_board] == [("all_reduce", 0, BACKWARD)]
    assert list(reported) == []
