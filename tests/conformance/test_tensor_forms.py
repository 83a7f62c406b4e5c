"""Correct tensor parallelism in forms that people hand in: no check accuses them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(600)  # one run over seven implementations

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("values", "partition", "traffic", "dropout")
THREE_RANKS = "not (2 or 4)"  # a choice of the checks: three ranks hide the least
PREFIX = "strategies.tensor."

# The least number of checks that each holds, by claim; the rest is about layers or options that it does not have.
HOLDS = {
    "tp_megatron": {"equivalence": 25, "partition": 5, "memory": 5, "traffic": 7},
    "tp_functions": {"equivalence": 25, "partition": 3, "memory": 3, "traffic": 9},
    "tp_tensors": {"equivalence": 25, "traffic": 7},
    "tp_objects": {"equivalence": 20, "partition": 4, "memory": 4, "traffic": 6},
    "tp_halves": {"equivalence": 35, "partition": 7, "memory": 7, "traffic": 8, "dropout": 1},
    "tp_whole_ends": {"equivalence": 11, "partition": 3, "memory": 3, "traffic": 1},
    "tp_sequence": {"equivalence": 35, "partition": 7, "memory": 7, "traffic": 10, "dropout": 1},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[dict[str, Any]]]:
    """The results of one run over all of them, by name."""
    folder = tmp_path_factory.mktemp("forms")
    checks = [f"conformance/strategies/test_tensor_{part}.py" for part in PARTS]
    impls = [f"--impl={ROOT / 'tests' / 'variants' / name}.py" for name in HOLDS]
    command = [sys.executable, "-m", "pytest", *checks, *impls, f"--report={folder}", "-q", "-k", THREE_RANKS]
    command += ["-p", "no:cacheprovider", "--hypothesis-profile=quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580, check=False)
    assert (folder / "report.json").exists(), done.stdout + done.stderr
    report = json.loads((folder / "report.json").read_text())
    return {name: [r for r in report["results"] if Path(r["impl"]).stem == name] for name in HOLDS}


@pytest.mark.parametrize("name", HOLDS)
def test_no_check_accuses_a_correct_form(results: Mapping[str, list[dict[str, Any]]], name: str) -> None:
    accused = [r for r in results[name] if not Verdict(r["verdict"]).is_passing]
    assert [(r["case"], r["message"]) for r in accused] == []


@pytest.mark.parametrize("name", HOLDS)
def test_a_correct_form_holds_what_it_provides(results: Mapping[str, list[dict[str, Any]]], name: str) -> None:
    held = [r["claim"].removeprefix(PREFIX) for r in results[name] if r["verdict"] == Verdict.HOLDS]
    assert {claim: held.count(claim) for claim, least in HOLDS[name].items() if held.count(claim) < least} == {}
