"""However a program ends, every rank has an Outcome that says so, and the next program runs in healthy ranks."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import pytest

from fixtures.world.outcome import Ending, Outcome, RanksFailed
from fixtures.world.pool import WorldPool
from tests.world import programs

SHORT_S = 0.5  # a deadline for programs that never come back


def next_program_runs(worlds: WorldPool, size: int = 2) -> bool:
    return worlds.world(size).run(programs.sum_of_ranks).values == [sum(range(size))] * size


@pytest.mark.parametrize(
    ("program", "type_", "text"),
    [
        (programs.raise_unprintable, "tests.world.programs.CannotBePrinted", "<its text cannot be had: RuntimeError>"),
        (programs.raise_unpicklable, "tests.world.programs.CannotBePickled", "held by a lock"),
        (programs.raise_deep, "RecursionError", "maximum recursion depth exceeded"),
        (programs.leave_by_sys_exit, "SystemExit", "3"),
        (programs.interrupt_oneself, "KeyboardInterrupt", ""),
    ],
)
def test_whatever_is_raised_becomes_text(
    worlds: WorldPool, program: Callable[..., object], type_: str, text: str
) -> None:
    for outcome in worlds.world(2).run(program):
        assert outcome.ending is Ending.RAISED
        assert (outcome.raised.type, outcome.raised.text) == (type_, text)
        assert outcome.raised.frame.file == programs.__file__
    assert next_program_runs(worlds)


def test_an_exception_on_one_rank_leaves_the_others_values(worlds: WorldPool) -> None:
    outcomes = worlds.world(3).run(programs.raise_on_one)
    assert [o.ending for o in outcomes] == [Ending.RETURNED, Ending.RAISED, Ending.RETURNED]
    assert (outcomes[0].value, outcomes[2].value) == (0, 2)
    assert outcomes[1].raised.frame.function == "raise_on_one"
    assert outcomes[1].raised.traceback.count("File ") == 1
    with pytest.raises(RanksFailed, match=r"rank 1 raised ValueError at .*programs.py:.*: only here"):
        outcomes.values  # noqa: B018 the property raises
    assert next_program_runs(worlds, 3)


def test_a_thread_that_calls_sys_exit_ends_only_itself(worlds: WorldPool) -> None:
    assert worlds.world(2).run(programs.sys_exit_in_a_thread).values == ["back", "back"]


@pytest.mark.parametrize("status", [0, 7])
def test_a_rank_that_exits_tells_its_status(worlds: WorldPool, status: int) -> None:
    outcomes = worlds.world(2).run(programs.exit_at_once, status)
    assert [(o.ending, o.exit_status, o.signal) for o in outcomes] == [(Ending.EXITED, status, None)] * 2
    assert next_program_runs(worlds)


def test_a_rank_that_becomes_another_program_has_exited(worlds: WorldPool) -> None:
    assert [o.ending for o in worlds.world(2).run(programs.become_another_program)] == [Ending.EXITED] * 2


@pytest.mark.parametrize(("program", "number", "words"), [
    (programs.abort, 6, "Fatal Python error: Aborted"),
    (programs.read_null, 11, "Fatal Python error: Segmentation fault"),
])  # fmt: skip
def test_a_rank_that_crashes_tells_its_signal_and_its_last_words(
    worlds: WorldPool, program: Callable[..., object], number: int, words: str
) -> None:
    for outcome in worlds.world(2).run(program):
        assert (outcome.ending, outcome.signal, outcome.exit_status) == (Ending.KILLED, number, None)
        assert words in outcome.output
        assert f"in {program.__name__}" in outcome.output
    assert next_program_runs(worlds)


def test_a_killed_rank_leaves_the_others_values(worlds: WorldPool) -> None:
    outcomes = worlds.world(3).run(programs.kill_one)
    assert [o.ending for o in outcomes] == [Ending.RETURNED, Ending.KILLED, Ending.RETURNED]
    assert outcomes[1].signal == 9


def test_ranks_that_kill_their_supervisor_go_with_it(worlds: WorldPool) -> None:
    assert [o.ending for o in worlds.world(2).run(programs.kill_the_supervisor)] == [Ending.KILLED] * 2
    assert next_program_runs(worlds)


def test_an_endless_loop_is_a_hang_that_names_its_line(worlds: WorldPool) -> None:
    outcomes = worlds.world(2).run(programs.loop_on_one, deadline_s=SHORT_S)
    assert [o.ending for o in outcomes] == [Ending.RETURNED, Ending.HUNG]
    hang = outcomes[1].hang
    assert "programs.py" in hang.call
    assert "in loop_on_one" in hang.call
    assert "in loop_on_one" in hang.stack
    assert not hang.deadlock
    assert next_program_runs(worlds)


def test_a_stopped_rank_is_a_hang_that_says_so(worlds: WorldPool) -> None:
    for outcome in worlds.world(2).run(programs.stop_oneself, deadline_s=SHORT_S):
        assert outcome.ending is Ending.HUNG
        assert "stopped" in outcome.hang.call
    assert next_program_runs(worlds)


def test_a_rank_that_takes_no_program_is_a_hang(worlds: WorldPool) -> None:
    """The program's arguments do not fit into the socket of a rank that is stopped."""
    world = worlds.world(2)
    os.kill(world.pids[1], signal.SIGSTOP)
    outcomes = world.run(programs.echo, bytes(1 << 23), deadline_s=SHORT_S)
    assert outcomes[1].ending is Ending.HUNG


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how long a process waited for a core")
def test_the_deadline_leaves_out_the_time_in_which_a_rank_got_no_core(worlds: WorldPool) -> None:
    deadline_s = 2 * SHORT_S
    outcomes = worlds.world(4).run(programs.share_a_core, SHORT_S, deadline_s=deadline_s, wall_s=60.0)
    assert outcomes.values == [0, 1, 2, 3]
    assert outcomes[0].duration_s > deadline_s


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how long a process waited for a core")
def test_no_run_lasts_longer_than_it_may_by_the_clock(worlds: WorldPool) -> None:
    outcomes = worlds.world(4).run(programs.share_a_core, 60.0, deadline_s=60.0, wall_s=SHORT_S)
    assert [outcome.ending for outcome in outcomes] == [Ending.HUNG] * 4


def test_a_deadlock_is_found_long_before_the_deadline(worlds: WorldPool) -> None:
    outcomes = worlds.world(4).run(programs.one_leaves_early, deadline_s=60.0)
    assert [o.ending for o in outcomes] == [Ending.HUNG, Ending.HUNG, Ending.RETURNED, Ending.HUNG]
    hang = outcomes[0].hang
    assert hang.deadlock
    assert "all_reduce" in hang.call
    assert "rank 2" in hang.verdict
    assert "in one_leaves_early" in hang.stack


def test_a_rank_that_never_comes_back_still_has_its_trace(worlds: WorldPool) -> None:
    outcomes = worlds.world(4).run(programs.one_leaves_early, deadline_s=60.0)
    for rank in (0, 1, 3):
        (operation,) = outcomes[rank].operations
        assert (operation.kind, operation.shape, operation.done_ns) == ("all_reduce", (8,), 0)


def test_when_one_rank_raises_the_waiting_ones_hang_at_once(worlds: WorldPool) -> None:
    outcomes = worlds.world(3).run(programs.one_raises_early, deadline_s=60.0)
    assert [o.ending for o in outcomes] == [Ending.HUNG, Ending.RAISED, Ending.HUNG]
    assert outcomes.describe().startswith("rank 1 raised ValueError")


def test_a_value_that_cannot_cross_is_the_ranks_own_failure(worlds: WorldPool) -> None:
    for program in (programs.send_function, programs.send_endless_list):
        for outcome in worlds.world(2).run(program):
            assert outcome.raised.type.endswith("CannotCross")


def test_a_large_value_crosses_and_a_huge_one_is_refused(worlds: WorldPool) -> None:
    outcome: Outcome = worlds.world(1).run(programs.send_zeros, 1 << 26)[0]
    assert outcome.value.shape == (1 << 26,)
    outcome = worlds.world(1).run(programs.send_huge_text)[0]
    assert "the limit is" in outcome.raised.text


def test_garbage_on_the_line_is_the_ranks_own_failure(worlds: WorldPool) -> None:
    for outcome in worlds.world(2).run(programs.speak_out_of_turn):
        assert outcome.raised.type == "ProtocolError"
        assert "not a Lockstep message" in outcome.raised.text
    assert next_program_runs(worlds)


def test_a_rank_that_closes_every_descriptor_still_has_an_outcome(worlds: WorldPool) -> None:
    for outcome in worlds.world(2).run(programs.close_all_descriptors, deadline_s=SHORT_S):
        assert outcome.ending is not Ending.RETURNED
    assert next_program_runs(worlds)
