"""``python -m lessons data-parallel``: both curves, their picture, what is said to be wrong, and the exit status."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch

from lessons.__main__ import find, main
from lessons.ddp_notes import Notes, Noting
from lessons.ddp_observed import Rank, Seen, descend, faults, gradient_faults, loss_faults
from lessons.ddp_worker import LEARNING_RATE, Settings

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
SETTINGS = Settings(world_size=2, backend="gloo", num_steps=4, batch_size=3, seed=1)


def _rank(number: int) -> Rank:
    """A rank that trains as one process does, and reads its own slices."""
    torch.manual_seed(5)
    points = [torch.nn.utils.parameters_to_vector(Noting(Notes()).parameters()).detach()]
    for step in range(SETTINGS.num_steps):
        points.append(descend(points[-1], SETTINGS, [slice(step * 6, (step + 1) * 6)])[0])
    rows = [list(range(step * 6 + number * 3, step * 6 + number * 3 + 3)) for step in range(SETTINGS.num_steps)]
    return Rank(points=torch.stack(points), rows=rows, group_size=2, backend="gloo")


def _found(*changed: Rank) -> list[str]:
    ranks = [*changed, *map(_rank, range(len(changed), SETTINGS.world_size))]
    seen = Seen(SETTINGS, ranks)
    return [*faults(seen), *gradient_faults(seen), *loss_faults(seen)]


def test_the_command_prints_and_draws_both_curves(tmp_path: Path) -> None:
    picture = tmp_path / "curves.svg"
    command = [sys.executable, "-m", "lessons", "data-parallel", "--world-size=3", "--num-steps=5", f"--plot={picture}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    steps = [list(map(float, row)) for row in rows if len(row) == 4 and row[0].isdigit()]
    assert [row[0] for row in steps] == [1, 2, 3, 4, 5]
    assert all(abs(alone - together) <= 1e-6 for _, alone, together, _ in steps)
    assert "The ranks train like one process." in done.stdout
    assert ET.parse(picture).getroot().tag == f"{SVG}svg"


def test_ranks_that_train_like_one_process_have_no_fault() -> None:
    assert _found() == []


def test_each_fault_is_told() -> None:
    sound = _rank(0)
    for changes, told in (
        ({"group_size": 1}, "rank 0 trained in a group of 1 rank, not 2"),
        ({"backend": "mpi"}, "rank 0's group runs on mpi, not gloo"),
        ({"rows": sound.rows[:3], "points": sound.points[:4]}, "rank 0 made 3 optimizer steps, not 4"),
        ({"rows": [[0, 1], *sound.rows[1:]]}, "rank 0 read 2 rows in step 1, not 3"),
        ({"rows": [sound.rows[0], [0, 1, 2], *sound.rows[2:]]}, "rank 0 read rows in step 2 that are not its own"),
        ({"points": sound.points + 0.01}, "the ranks' parameters have drifted apart"),
        ({"points": sound.points * float("nan")}, "the ranks' parameters have drifted apart"),
    ):
        assert any(told in fault for fault in _found(dataclasses.replace(sound, **changes))), told


def test_steps_of_another_size_are_another_gradient_and_other_losses() -> None:
    sound = _rank(0)
    steps = (sound.points[1:] - sound.points[:-1]) * 2
    points = torch.cat([sound.points[:1], sound.points[0] + steps.cumsum(0)])
    both = [dataclasses.replace(_rank(number), points=points) for number in range(2)]
    gradient, losses = _found(*both)
    assert "the gradient after the all-reduce is not that of one process" in gradient
    assert "from step 2 on the losses differ" in losses
    assert LEARNING_RATE * 8 == 1  # dividing by it is exact


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--world-size=1"], "one process with 2 to 8 ranks"),
        (["--num-steps=0"], "--num-steps 0"),
        (["--batch-size=0"], "--batch-size 0"),
        (["--batch-size=4096", "--num-steps=1000"], "read 16,384,000 rows"),
        (["--plot=curves.txt"], "the ending .svg or .png"),
        (["--plot=nowhere/curves.svg"], "make it first"),
        (["--impl=nobody"], "nobody"),
    ],
)
def test_bad_input_is_status_2_and_says_what_to_do(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["77", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert find("77") is find("data-parallel")
