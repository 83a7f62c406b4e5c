"""The hang board: what a rank writes is what the parent reads."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from fixtures.witness import board_layout as layout
from fixtures.witness.board import Board
from fixtures.witness.board_layout import Key, Phase
from tests.witness.boards import Boards, operation


@pytest.fixture
def boards(tmp_path: Path) -> Boards:
    return Boards(tmp_path, 2)


def test_the_parent_reads_what_is_outstanding_with_all_that_names_it(boards: Boards) -> None:
    index = boards.issue(0, "broadcast", root=1, where="mine/ddp.py:38", dtype="float64", shape=(2, 3), num_bytes=48)
    boards.ranks[0].waiting(index)

    (call,) = boards.board.view(0).outstanding

    assert call.key == Key("collective", "default")
    assert (call.kind, call.root, call.dtype, call.shape, call.num_bytes) == ("broadcast", 1, "float64", (2, 3), 48)
    assert (call.where, call.ranks, call.index) == ("mine/ddp.py:38", (0, 1), 0)
    assert call.waiter == threading.get_native_id()
    assert boards.board.view(1).outstanding == ()


def test_what_is_done_is_no_longer_outstanding_but_still_remembered(boards: Boards) -> None:
    boards.issue(0, "all_reduce", ends=True)

    assert boards.board.view(0).outstanding == ()
    assert [call.kind for call in boards.board.recent(0)] == ["all_reduce"]


def test_a_wait_that_ended_without_the_operation_leaves_nobody_waiting(boards: Boards) -> None:
    index = boards.issue(0, "all_reduce", waits=True)
    boards.ranks[0].unwaiting(index)

    assert [call.waiter for call in boards.board.view(0).outstanding] == [0]


def test_operations_are_counted_by_group_and_messages_by_peer_direction_and_tag(boards: Boards) -> None:
    for _ in range(3):
        boards.issue(0, "all_reduce", ends=True)
    boards.issue(0, "barrier", ends=True)
    boards.issue(0, "all_reduce", group="1", ends=True)
    boards.issue(0, "send", peer=1, tag=7, ends=True)
    boards.issue(0, "recv", peer=1, tag=7, ends=True)
    boards.issue(0, "send", peer=1, ends=True)

    assert boards.board.view(0).counts == {
        Key("collective", "default"): 4,
        Key("collective", "1"): 1,
        Key("send", "default", 1, 7): 1,
        Key("recv", "default", 1, 7): 1,
        Key("send", "default", 1, 0): 1,
    }


def test_every_call_changes_the_pulse(boards: Boards) -> None:
    rank, pulses = boards.ranks[0], [boards.board.pulse(0)]
    rank.issued(500, operation("barrier", (0, 1)))
    pulses.append(boards.board.pulse(0))
    rank.waiting(500)
    pulses.append(boards.board.pulse(0))
    rank.done(500)
    pulses.append(boards.board.pulse(0))
    rank.finished(1)
    pulses.append(boards.board.pulse(0))
    rank.idle()
    pulses.append(boards.board.pulse(0))

    assert len(set(pulses)) == len(pulses)


def test_a_new_program_starts_from_zero(boards: Boards) -> None:
    boards.issue(0, "all_reduce", waits=True)
    boards.ranks[0].mark("backward-end")
    boards.board.view(0)
    boards.ranks[0].finished(1, raised=True)
    assert boards.board.view(0).phase is Phase.RAISED

    boards.ranks[0].program(2)
    boards.issue(0, "send", peer=1)

    view = boards.board.view(0)
    assert (view.phase, view.seq, view.mark) == (Phase.RUNNING, 2, "")
    assert view.counts == {Key("send", "default", 1): 1}
    assert [call.kind for call in view.outstanding] == [call.kind for call in boards.board.recent(0)] == ["send"]


def test_a_late_done_of_the_last_program_does_not_touch_this_one(boards: Boards) -> None:
    late = boards.issue(0, "all_reduce")
    boards.ranks[0].program(2)
    boards.issue(0, "barrier")
    boards.ranks[0].done(late)

    assert [call.kind for call in boards.board.view(0).outstanding] == ["barrier"]


def test_a_group_made_under_an_old_name_starts_from_zero(boards: Boards) -> None:
    boards.issue(0, "all_reduce", group="1")
    boards.issue(0, "all_reduce")
    boards.issue(0, "new_group", group="1", ends=True)
    boards.issue(0, "barrier", group="1")

    view = boards.board.view(0)
    assert view.counts[Key("collective", "1")] == 1
    assert view.counts[Key("collective", "default")] == 1
    assert [(call.kind, call.key.group) for call in view.outstanding] == [("all_reduce", "default"), ("barrier", "1")]


def test_forgotten_messages_make_room_for_operations_that_count(boards: Boards) -> None:
    for _ in range(layout.NUM_SLOTS + 5):
        boards.issue(0, "send", peer=1)
    boards.issue(0, "all_reduce", waits=True)

    view = boards.board.view(0)
    assert not view.lost
    assert len(view.outstanding) == layout.NUM_SLOTS
    assert view.outstanding[-1].kind == "all_reduce"
    assert view.counts[Key("send", "default", 1)] == layout.NUM_SLOTS + 5


def test_what_does_not_fit_is_said_to_be_lost(boards: Boards) -> None:
    for _ in range(layout.NUM_SLOTS + 1):
        boards.issue(0, "all_reduce")
    boards.issue(1, "send", peer=0, group="g" * layout.KEY_BYTES)

    assert boards.board.view(0).lost
    assert boards.board.view(1).lost


def test_more_call_sites_than_there_is_room_for_push_out_the_oldest_only(boards: Boards) -> None:
    for line in range(layout.NUM_TEXTS + 10):
        boards.issue(0, "all_reduce", where=f"mine/ddp.py:{line}", ends=True)

    recent = boards.board.recent(0)
    assert recent[-1].where == f"mine/ddp.py:{layout.NUM_TEXTS + 9}"
    assert len(recent) == layout.NUM_RECENT


def test_several_threads_lose_no_operation(boards: Boards) -> None:
    def many(first: int) -> None:
        for index in range(first, first + 2000):
            boards.ranks[0].issued(index, operation("send", (0, 1), peer=1))
            boards.ranks[0].waiting(index)
            boards.ranks[0].done(index)

    workers = [threading.Thread(target=many, args=(1_000_000 * n,)) for n in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    view = boards.board.view(0)
    assert view.counts == {Key("send", "default", 1): 8000}
    assert view.outstanding == ()
    assert not view.lost


def test_another_process_reads_the_same_file(boards: Boards) -> None:
    boards.issue(0, "barrier")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, Board.open(boards.board.path).view(0).outstanding[0].kind.encode())
        os._exit(0)
    os.waitpid(pid, 0)

    assert os.read(reader, 100) == b"barrier"


def test_the_file_is_private_and_made_only_once(boards: Boards) -> None:
    assert boards.board.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        Board.create(boards.board.path, 2)


def test_what_is_no_board_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"x" * 100)
    with pytest.raises(ValueError, match=r"other is not a hang board: 100 bytes"):
        Board.open(other)
    Board.create(tmp_path / "board", 2)
    with pytest.raises(ValueError, match=r"rank 2 has no place on .*board, which was made for 2 ranks"):
        Board.attach(tmp_path / "board", 2)
