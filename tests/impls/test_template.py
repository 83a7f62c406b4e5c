"""``python -m impls new``: what it makes, what it refuses, and that the template keeps up with the contract."""

from __future__ import annotations

import importlib
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from impls.__main__ import main
from impls.contract import BLOCKS, ENTRIES
from impls.loading import load
from impls.locate import HOME, bundled

CONSTANTS = {name for name, entry in ENTRIES.items() if not entry.orders}  # which have no value yet
NAME = f"made_by_test_{os.getpid()}"  # workers that run side by side have a folder each


@pytest.fixture
def made(capsys: pytest.CaptureFixture[str]) -> Iterator[Path]:
    folder = HOME / NAME
    assert not folder.exists()
    try:
        assert main(["new", NAME]) == 0
        assert f"pytest -n 4 --impl={NAME}" in capsys.readouterr().out
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_new_folder_is_an_implementation_that_provides_nothing_yet(made: Path) -> None:
    assert NAME in bundled()
    implementation = load(NAME)
    assert implementation.blocks == ()
    reasons = {name: reason for block in BLOCKS for name, reason in implementation.missing(block).items()}
    assert set(reasons) == set(ENTRIES)
    assert {name for name, reason in reasons.items() if "still empty" not in reason} == CONSTANTS


def test_a_folder_that_exists_is_left_as_it_is(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (made / "mine.txt").write_text("work")
    with pytest.raises(SystemExit, match="2"):
        main(["new", NAME])
    assert "exists already and is left as it is" in capsys.readouterr().err
    assert (made / "mine.txt").read_text() == "work"


@pytest.mark.parametrize("name", ["a-b", "1st", "class", "../x", "_private", ""])
def test_a_name_that_is_no_package_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["new", name])
    assert "cannot name a Python package" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["reference", "torch", "mutants", "template", "mesh"])
def test_what_the_suite_brings_is_not_overwritten(name: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["new", name])


def test_the_template_asks_for_parameters_that_the_contract_hands_over() -> None:
    for name, entry in ENTRIES.items():
        if entry.orders:
            function = getattr(importlib.import_module(f"impls.template.{entry.block}"), name)
            asked = inspect.signature(function).parameters.values()
            names = {parameter.name for parameter in asked if parameter.kind is not parameter.VAR_KEYWORD}
            assert names <= set(entry.orders[0])


def test_the_command_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "impls", "new", "not a name"], capture_output=True, text=True, cwd=HOME.parent
    )
    assert done.returncode == 2
    assert "'not a name' cannot name a Python package" in done.stderr
