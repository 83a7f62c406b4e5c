"""``python -m lessons zero``: what it prints and draws, what it says is wrong, and its exit status."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lessons import zero
from lessons.__main__ import LESSONS, find, main
from lessons.zero_training import Curves, Held

ROOT = Path(__file__).resolve().parents[2]
LAST_DIGIT = 1.5e-6  # printed losses are rounded to six digits behind the point
SVG = "{http://www.w3.org/2000/svg}"
LOSSES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
SOUND = Curves(world_size=4, alone=LOSSES, data_parallel=LOSSES, sharded=LOSSES)
NOTHING_SHARED = """
import torch
import torch.distributed as dist

class ShardedOptimizer:
    def __init__(self, params, optimizer_cls, **kwargs):
        self.inner = optimizer_cls(params, **kwargs)
        self.zero_grad, self.param_groups = self.inner.zero_grad, self.inner.param_groups
    def step(self):
        self.inner.step()
"""


def _held(world_size: int, optimizer: int, **changes: int) -> Held:
    row = Held(
        world_size=world_size,
        rank=0,
        num_parameters=1000,
        num_tensors=5,
        parameters=2000,
        gradients=2000,
        optimizer=optimizer,
        other=0,
    )
    return dataclasses.replace(row, **changes)


def _lesson(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lessons", "zero", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_lesson_prints_both_tables_and_draws_them(tmp_path: Path) -> None:
    picture = tmp_path / "zero.svg"
    done = _lesson("--world-size", "3", "--steps", "8", "--plot", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    steps = [line for line in lines if len(line) == 4 and line[0].isdigit()]
    assert [line[0] for line in steps] == [str(step) for step in range(1, 9)]
    losses = [[float(word) for word in line[1:]] for line in steps]
    assert all(max(row) - min(row) <= LAST_DIGIT for row in losses)
    totals = {line[0]: float(line[4]) for line in lines if len(line) > 6 and line[0].isdigit()}
    assert totals == {
        "1": pytest.approx(16, abs=0.02),
        "2": pytest.approx(10, abs=0.02),
        "3": pytest.approx(8, abs=0.02),
    }
    assert ET.parse(picture).getroot().tag == f"{SVG}svg"


def test_an_optimizer_that_shards_nothing_is_told_so_and_the_status_is_1(tmp_path: Path) -> None:
    path = tmp_path / "zero.py"
    path.write_text(NOTHING_SHARED)
    done = _lesson("--world-size", "2", "--steps", "2", "--impl", str(path))
    assert done.returncode == 1
    assert "rank 0 of 2 holds" in done.stdout
    assert "--claim=zero.memory.1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["zero", "--world-size", "1"], "2 ranks at least"),
        (["zero", "--steps", "0"], "at least one step"),
        (["zero", "--plot", "picture.txt"], "the ending .svg or .png"),
        (["zero", "--plot", "nowhere/picture.svg"], "make it first"),
        (["zero", "--impl", "nobody"], "nobody"),
        (["zerro"], "Did you mean 'zero'?"),
    ],
)
def test_bad_input_is_status_2_and_says_what_to_do(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert told in capsys.readouterr().err


def test_a_lesson_is_found_by_name_and_by_number() -> None:
    assert find("zero") is find("78") is not None
    assert [find(lesson.name) for lesson in LESSONS] == list(LESSONS)
    assert find("0") is None


def test_losses_apart_by_more_than_rounding_are_a_fault() -> None:
    assert list(zero.faults_in_curves(SOUND)) == []
    near = dataclasses.replace(SOUND, sharded=(*LOSSES[:-1], LOSSES[-1] + 0.5 * SOUND.bound))
    assert list(zero.faults_in_curves(near)) == []
    for value in (LOSSES[-1] + 2 * SOUND.bound, float("nan")):
        (fault,) = zero.faults_in_curves(dataclasses.replace(SOUND, sharded=(*LOSSES[:-1], value)))
        assert "does not train like one process" in fault
    (idle,) = zero.faults_in_curves(
        Curves(world_size=2, alone=(1.0,) * 6, data_parallel=(1.0,) * 6, sharded=(1.0,) * 6)
    )
    assert "nothing was learnt" in idle


@pytest.mark.parametrize(("share", "whole"), [(12, 12_000), (8, 8_000)])
def test_bytes_beyond_the_formula_and_its_extras_are_a_fault(share: int, whole: int) -> None:
    table = [_held(1, whole + 20), _held(2, whole // 2 + 20)]
    assert zero.optimizer_share(table) == share
    assert list(zero.faults_in_memory(table)) == []
    room = zero.allowed_beside(table[1], share)
    assert list(zero.faults_in_memory([table[0], _held(2, whole // 2 + room)])) == []
    for row in (_held(2, whole // 2 + room + 1), _held(2, whole // 2, other=room + 1), _held(2, whole)):
        (fault,) = zero.faults_in_memory([table[0], row])
        assert "rank 0 of 2" in fault
