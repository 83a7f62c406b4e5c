"""What a program leaves behind is put back or ends with its world, and is named in the Outcome either way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.world import kernel
from fixtures.world.outcome import Ending, Outcomes
from fixtures.world.pool import WorldPool
from tests.world import programs


def leftovers(outcomes: Outcomes) -> list[str]:
    return [sentence for outcome in outcomes for sentence in outcome.leftovers]


def test_changed_surroundings_are_as_before_for_the_next_program(worlds: WorldPool) -> None:
    world = worlds.world(2)
    before = world.run(programs.surroundings).values
    changed = world.run(programs.change_surroundings)
    assert world.run(programs.surroundings).values == before
    told = "; ".join(leftovers(changed))
    for word in ("working directory", "LEFT_BEHIND", "sys.path", "float64", "meta", "threads", "gradients", "umask"):
        assert word in told
    assert world.healthy


@pytest.mark.parametrize("program", [programs.leave_child, programs.leave_detached_child])
def test_a_process_left_behind_is_named_and_ends_with_its_world(
    worlds: WorldPool, program: Callable[..., object]
) -> None:
    world = worlds.world(2)
    outcomes = world.run(program)
    assert "left" in " ".join(leftovers(outcomes))
    assert not world.healthy
    assert not any(kernel.lives(pid) for pid in outcomes.values)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="shared memory has no folder here")  # noqa: PTH112
@pytest.mark.parametrize("ends", [False, True], ids=["rank returns", "rank exits"])
def test_shared_memory_ends_with_its_world(worlds: WorldPool, ends: bool) -> None:
    world = worlds.world(2)
    outcomes = world.run(programs.leave_shared_memory, ends)
    world.close()
    assert outcomes.all_returned is not ends
    made = {name for outcome in outcomes for name in outcome.output.split()}
    assert len(made) == 2
    assert not made & set(os.listdir("/dev/shm"))  # noqa: PTH208


def test_temporary_files_lie_in_the_folder_of_the_world(worlds: WorldPool) -> None:
    world = worlds.world(2)
    for made in world.run(programs.leave_temporary_file).values:
        assert Path(made).is_relative_to(world.folder)


def test_a_forked_copy_of_a_rank_does_not_answer_for_it(worlds: WorldPool) -> None:
    assert worlds.world(2).run(programs.fork_and_come_back_twice).values == [0, 1]
    assert worlds.world(2).run(programs.sum_of_ranks).values == [1.0, 1.0]


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (programs.patch_torch, "patched torch.distributed.all_reduce"),
        (programs.leave_thread, "left the thread 'left' running"),
        (programs.leave_group, "left 1 process groups not destroyed"),
        (programs.leave_operation, "left 1 operations under way"),
    ],
)
def test_what_cannot_be_undone_costs_the_world(
    worlds: WorldPool, program: Callable[..., object], sentence: str
) -> None:
    world = worlds.world(2)
    outcomes = world.run(program)
    assert outcomes.all_returned
    assert sentence in leftovers(outcomes)
    assert not world.healthy
    assert worlds.world(2).run(programs.sum_of_ranks).values == [1.0, 1.0]


def test_closed_descriptors_cost_the_world(worlds: WorldPool) -> None:
    world = worlds.world(2)
    for outcome in world.run(programs.close_many_descriptors):
        if outcome.ending is Ending.RETURNED:
            assert "closed descriptors of the process that are not its own" in outcome.leftovers
        else:  # gloo's own thread found its descriptors closed first, and aborts the process
            assert outcome.ending is Ending.KILLED
            assert outcome.signal == signal.SIGABRT
    assert not world.healthy
    assert worlds.world(2).run(programs.sum_of_ranks).values == [1.0, 1.0]


def test_a_closed_world_leaves_no_process_and_no_folder(worlds: WorldPool) -> None:
    world = worlds.world(2)
    folder, pids = world.folder, world.pids
    assert folder.is_dir()
    world.close()
    assert not folder.exists()
    assert not any(kernel.lives(pid) for pid in pids)


def test_a_world_leaves_no_descriptor_in_the_client(worlds: WorldPool) -> None:
    if not os.path.isdir("/proc/self/fd"):  # noqa: PTH112
        pytest.skip("the platform does not list a process's descriptors")
    worlds.world(2).close()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(3):
        worlds.world(2).close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
