"""Ranks load an implementation before their first program; what goes wrong then is that program's outcome."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from fixtures.world.outcome import Ending, Outcomes
from fixtures.world.pool import WorldPool
from tests.world import programs

PROVIDES = "def ring_allreduce(mesh, rank, world_size, tensor):\n    return tensor\n"


def run_with(worlds: WorldPool, folder: Path, source: str) -> Outcomes:
    path = folder / "homework.py"
    path.write_text(textwrap.dedent(source) + "\n\n" + PROVIDES)
    return worlds.world(2, impl=str(path)).run(programs.name_of_implementation, deadline_s=3.0)


def test_a_world_without_one_has_none(worlds: WorldPool) -> None:
    assert worlds.world(2).run(programs.name_of_implementation).values == [None, None]


def test_an_implementation_is_there_in_every_rank(worlds: WorldPool, tmp_path: Path) -> None:
    assert run_with(worlds, tmp_path, "").values == [str(tmp_path / "homework.py")] * 2


@pytest.mark.parametrize(
    ("source", "type_"),
    [("raise ValueError('at import')", "ValueError"), ("import sys; sys.exit(1)", "SystemExit")],
)
def test_an_import_that_raises_is_a_raised_outcome_at_its_line(
    worlds: WorldPool, tmp_path: Path, source: str, type_: str
) -> None:
    for outcome in run_with(worlds, tmp_path, source):
        assert outcome.ending is Ending.RAISED
        assert outcome.raised.type == type_
        assert outcome.raised.frame.file == str(tmp_path / "homework.py")
        assert outcome.raised.frame.line == 1


def test_an_import_that_ends_the_process_is_an_exit(worlds: WorldPool, tmp_path: Path) -> None:
    for outcome in run_with(worlds, tmp_path, "import os; os._exit(9)"):
        assert (outcome.ending, outcome.exit_status) == (Ending.EXITED, 9)


def test_an_import_that_never_ends_is_a_hang(worlds: WorldPool, tmp_path: Path) -> None:
    for outcome in run_with(worlds, tmp_path, "while True: pass"):
        assert outcome.ending is Ending.HUNG
        assert "homework.py:1" in outcome.hang.call


def test_an_implementation_that_does_not_exist_is_a_raised_outcome(worlds: WorldPool) -> None:
    for outcome in worlds.world(2, impl="no-such-implementation").run(programs.nothing):
        assert outcome.raised.type.endswith("UnknownImplementation")
