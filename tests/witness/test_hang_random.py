"""The hang witness against random programs: never a word about a correct one, always one about a locked one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.witness import random_programs
from tests.witness.forked import run

WORLDS_PER_TEST = 10
# Far shorter than in use: the rule itself must be right, the pause only covers what cannot be read at one instant.
QUIET_S = 0.03


@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("first_seed", [100, 200])
def test_a_correct_program_is_never_said_to_be_deadlocked(first_seed: int, world_size: int, tmp_path: Path) -> None:
    for seed in range(first_seed, first_seed + WORLDS_PER_TEST):
        folder = tmp_path / str(seed)
        folder.mkdir()
        report = run(random_programs.program(seed), world_size, folder, quiet_s=QUIET_S, limit_s=60.0)

        assert report.verdict is None, f"seed {seed}: {report.verdict}"
        assert report.exits == (0,) * world_size, f"seed {seed}: {report}"


@pytest.mark.parametrize("world_size", [2, 3])
def test_a_program_with_a_call_left_out_ends_or_is_said_to_be_deadlocked(world_size: int, tmp_path: Path) -> None:
    for seed in range(300, 300 + WORLDS_PER_TEST):
        folder = tmp_path / str(seed)
        folder.mkdir()
        without = _something_to_leave_out(seed, world_size)
        report = run(random_programs.program(seed, without=without), world_size, folder, limit_s=30.0)

        assert report.verdict is not None or None not in report.exits, f"seed {seed}: {report.stalled}"


def _something_to_leave_out(seed: int, world_size: int) -> tuple[int, int]:
    """A rank and the number of an action that it takes part in with others."""
    _, actions = random_programs.draw(seed, world_size)
    shared = [number for number, action in enumerate(actions) if action.ranks]
    rng = random.Random(seed)
    number = rng.choice(shared)
    return rng.choice(actions[number].ranks), number
