"""Correct sharded optimizers and modules in forms that people hand in: no check of zero.equivalence accuses them."""

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
VARIANTS = ROOT / "tests" / "variants"
CHECKS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "conformance" / "zero").glob("test_equivalence_*.py"))
THREE_RANKS = "not (2-stage-1 or 2-stage-2 or 2-stage-3)"  # a choice of the checks: three ranks hide the least

# The least number of checks that each holds, by tier; the rest is about stages or options that it does not provide.
HOLDS = {
    "zero_owners": {"core": 7, "contract": 7, "exotic": 7},
    "zero_by_hand": {"core": 6, "contract": 5, "exotic": 6},
    "zero_around": {"core": 7, "contract": 11, "exotic": 7},
    "zero2_hooks": {"core": 7, "contract": 10, "exotic": 7},
    "fsdp_layers": {"core": 7, "contract": 9, "exotic": 7},
    "mixed_masters": {"core": 4, "contract": 13, "exotic": 2},
}
UNKNOWN = "other_rule"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[dict[str, Any]]]:
    """The results of one run over all of them, by name."""
    folder = tmp_path_factory.mktemp("forms")
    by_hand = (VARIANTS / "zero_by_hand.py").read_text()
    (folder / "other_rule.py").write_text(by_hand.replace("0.9", "0.8"))  # an Adam of its own: nothing knows it
    impls = [str(folder if name == UNKNOWN else VARIANTS) + f"/{name}.py" for name in (*HOLDS, UNKNOWN)]
    command = [sys.executable, "-m", "pytest", *CHECKS, *(f"--impl={path}" for path in impls)]
    command += [f"--report={folder}", "-q", "-k", THREE_RANKS, "-p", "no:cacheprovider", "--hypothesis-profile=quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580, check=False)
    assert (folder / "report.json").exists(), done.stdout + done.stderr
    report = json.loads((folder / "report.json").read_text())
    return {name: [r for r in report["results"] if Path(r["impl"]).stem == name] for name in (*HOLDS, UNKNOWN)}


@pytest.mark.parametrize("name", [*HOLDS, UNKNOWN])
def test_no_check_accuses_a_correct_form(results: Mapping[str, list[dict[str, Any]]], name: str) -> None:
    accused = [r for r in results[name] if not Verdict(r["verdict"]).is_passing]
    assert [(r["case"], r["message"]) for r in accused] == []


@pytest.mark.parametrize("name", HOLDS)
def test_a_correct_form_holds_what_it_provides(results: Mapping[str, list[dict[str, Any]]], name: str) -> None:
    held = [r["tier"] for r in results[name] if r["verdict"] == Verdict.HOLDS]
    assert {tier: held.count(tier) for tier in HOLDS[name] if held.count(tier) < HOLDS[name][tier]} == {}


def test_a_rule_that_nobody_knows_is_inconclusive(results: Mapping[str, list[dict[str, Any]]]) -> None:
    told = [r["message"] for r in results[UNKNOWN] if r["verdict"] == Verdict.INCONCLUSIVE]
    assert len(told) >= 5
    assert all("alone it is none of SGD(), Adam()" in message for message in told)
    assert not [r for r in results[UNKNOWN] if r["claim"] == "zero.equivalence" and r["verdict"] == Verdict.HOLDS]


def test_a_form_without_groups_or_state_dict_is_told_so(results: Mapping[str, list[dict[str, Any]]]) -> None:
    told = {r["case"].partition("[")[0]: r["message"] for r in results["zero_by_hand"] if "stage-1" in r["case"]}
    assert "takes a module, and no parameter groups" in told["test_parameter_groups_keep_their_options"]
    assert "has no state_dict()" in told["test_training_goes_on_from_a_saved_state"]
    assert "has no param_groups" in told["test_a_learning_rate_that_changes_is_seen"]
