"""The hang witness on real gloo ranks. No process group times out within a test: the verdicts are the witness's."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.witness import hanging
from tests.witness.forked import Report, run

Program = Callable[[int, int], None]
STALL_LIMIT_S = 1.0  # several times what a verdict takes

# program, ranks, odd ones, cycle, what the sentence says
DEADLOCKS: list[tuple[Program, int, tuple[int, ...], tuple[int, ...], list[str]]] = [
    (hanging.send_send, 2, (), (0, 1), ["rank 0 waits in send #0 to rank 1 (4 floats", "All of them send"]),
    (hanging.send_send, 4, (), (0, 1, 2, 3), ["They wait in a circle: 0 -> 1 -> 2 -> 3 -> 0"]),
    (hanging.recv_recv, 2, (), (0, 1), ["rank 1 waits in recv #0 from rank 0", "All of them receive"]),
    (
        hanging.rank_two_skips_an_all_reduce,
        4,
        (2,),
        (),
        ["ranks 0, 1, 3 wait in all_reduce #3 (8 floats, witness/hanging.py:", "rank 2 finished its program without"],
    ),
    (hanging.rank_one_calls_broadcast, 3, (1,), (), ["rank 1 called broadcast from root 1 (8 floats", "instead"]),
    (hanging.roots_differ, 3, (2,), (), ["rank 2 called broadcast from root 2"]),
    (hanging.groups_crossed, 2, (), (0, 1), ["in group 1 of ranks 0, 1", "in group 2", "different orders"]),
    (hanging.rank_one_makes_no_group, 3, (1,), (), ["ranks 0, 2 wait in new_group #0 of ranks 0, 1, 2"]),
    (hanging.rank_zero_skips_a_barrier, 3, (0,), (), ["ranks 1, 2 wait in barrier #0", "rank 0 finished"]),
    (hanging.rank_one_raises, 3, (1,), (), ["rank 1 left its program with an exception without entering it"]),
    (hanging.recv_of_a_message_with_another_tag, 2, (), (0, 1), ["send #0 to rank 1 with tag 1", "with tag 2"]),
    (
        hanging.tail_waits_for_a_rank_that_waits_in_a_collective,
        3,
        (2,),
        (0, 2),
        ["rank 2 has not entered it but waits in recv #0 from rank 0"],
    ),
    (hanging.ddp_with_a_parameter_unused_on_rank_two, 3, (2,), (), ["ranks 0, 1 wait in all_reduce #3", "rank 2"]),
    (hanging.ddp_whose_rank_two_goes_on_to_a_barrier, 3, (2,), (), ["rank 2 called barrier", "there instead"]),
    (hanging.future_never_comes, 2, (1,), (), ["rank 0 waits in all_reduce #0", "rank 1 finished"]),
    (hanging.rank_one_fell_behind_long_ago, 3, (1,), (), ["all_reduce #4", "They had parted before, at #1", "MAX"]),
    (hanging.half_deadlocked, 3, (), (0, 1), ["rank 0 waits in send #0 to rank 1"]),
    (hanging.locks_itself, 2, (0,), (), ["rank 1 waits in barrier #0", "rank 0 sleeps outside any operation"]),
    (hanging.drops_the_handles_of_its_messages, 2, (), (), ["every rank has issued it", "a message was lost"]),
]

NOT_DEADLOCKED: list[tuple[Program, int]] = [
    (hanging.sleeps_before_recv, 2),
    (hanging.computes_before_all_reduce, 2),
    (hanging.reads_a_pipe_before_all_reduce, 2),
    (hanging.thread_sends_later, 2),
    (hanging.waits_for_a_big_sum_in_a_future, 2),
    (hanging.takes_a_big_broadcast_while_the_root_computes, 2),
    (hanging.leaf_comes_late_to_a_broadcast, 4),
    (hanging.sums_differ_in_kind, 2),
    (hanging.leaves_works_behind, 2),
    (hanging.remakes_its_groups, 3),
    (hanging.untraced_group, 2),
]


def _name(value: object) -> str | None:
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(("program", "world_size", "odd_ones", "cycle", "words"), DEADLOCKS, ids=_name)
def test_a_deadlock_is_found_and_told(
    program: Program,
    world_size: int,
    odd_ones: tuple[int, ...],
    cycle: tuple[int, ...],
    words: list[str],
    tmp_path: Path,
) -> None:
    report = run(program, world_size, tmp_path)

    assert report.verdict is not None, report
    assert report.verdict.deadlock
    assert [part for part in words if part not in report.verdict.sentence] == [], report.verdict.sentence
    assert (report.verdict.odd_ones, report.verdict.cycle) == (odd_ones, cycle), report.verdict.sentence
    assert sorted(report.verdict.calls) == list(range(world_size))


@pytest.mark.parametrize(("program", "world_size"), NOT_DEADLOCKED, ids=_name)
def test_what_will_go_on_is_no_deadlock(program: Program, world_size: int, tmp_path: Path) -> None:
    report = run(program, world_size, tmp_path)

    assert report.verdict is None, report.verdict
    assert report.exits == (0,) * world_size


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (hanging.sleeps_for_ever, "stalled: rank 0 waits for rank 1 in recv #0 from rank 1 (4 floats, witness/hanging"),
        (hanging.sleeps_for_ever, "rank 1 is alive: it sleeps"),
        (hanging.stops_itself, "rank 1 is alive: it is stopped"),
        (hanging.reads_for_ever, "rank 1 is alive: it does input or output"),
    ],
    ids=_name,
)
def test_a_rank_that_is_alive_is_told_only_at_the_limit(program: Program, words: str, tmp_path: Path) -> None:
    report = run(program, 2, tmp_path, limit_s=STALL_LIMIT_S)

    assert report.verdict is None
    assert report.stalled is not None
    assert not report.stalled.deadlock
    assert words in report.stalled.sentence


def test_a_rank_that_aborts_is_no_deadlock_of_its_own(tmp_path: Path) -> None:
    report = run(hanging.sizes_differ, 3, tmp_path)

    assert report.verdict is None
    assert report.exits[2] == -signal.SIGABRT


class TestWhereThreadsCannotBeSeen:
    """Macs: the board alone, which says less and nothing wrong."""

    @pytest.fixture(autouse=True)
    def _blind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("fixtures.witness.threads.readable", lambda: False)

    def _run(self, program: Program, world_size: int, folder: Path, limit_s: float = 60.0) -> Report:
        return run(program, world_size, folder, limit_s=limit_s, portable=True)

    @pytest.mark.parametrize("program", [hanging.send_send, hanging.roots_differ, hanging.rank_one_makes_no_group])
    def test_ranks_whose_only_thread_waits_are_found(self, program: Program, tmp_path: Path) -> None:
        report = self._run(program, 3, tmp_path)

        assert report.verdict is not None
        assert report.verdict.deadlock

    @pytest.mark.parametrize("program", [hanging.future_never_comes, hanging.locks_itself])
    def test_what_the_board_does_not_see_is_left_to_the_limit(self, program: Program, tmp_path: Path) -> None:
        report = self._run(program, 2, tmp_path, limit_s=STALL_LIMIT_S)

        assert report.verdict is None

    @pytest.mark.parametrize(
        "program", [hanging.sleeps_before_recv, hanging.thread_sends_later, hanging.waits_for_a_big_sum_in_a_future]
    )
    def test_what_will_go_on_is_no_deadlock(self, program: Program, tmp_path: Path) -> None:
        report = self._run(program, 2, tmp_path)

        assert report.verdict is None, report.verdict
        assert report.exits == (0, 0)
