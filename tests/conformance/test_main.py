"""``python -m conformance``: what it hands to pytest, and what it refuses."""

from __future__ import annotations

import subprocess

import pytest

from conformance.__main__ import main


@pytest.fixture
def commands(monkeypatch):
    called = []
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: called.append(command) or subprocess.CompletedProcess(command, 0)
    )
    return called


def test_mutants_hands_options_on_to_pytest(commands):
    assert main(["mutants", "-n", "8", "-k", "ring"]) == 0
    assert commands[0][-4:] == ["-n", "8", "-k", "ring"]
    assert "--mutants=full" in commands[0]


def test_mutants_runs_four_workers_unless_told_otherwise(commands):
    main(["mutants"])
    main(["mutants", "-n0"])
    assert [command.count("-n") for command in commands] == [1, 0]


def test_show_takes_no_other_options(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["show", "reference", "--tier=core"])
    assert "unrecognized arguments: --tier=core" in capsys.readouterr().err
