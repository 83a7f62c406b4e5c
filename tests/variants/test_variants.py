"""What people hand in and is right, whatever its form, breaks no claim about data parallelism."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(600)  # one run over six implementations

ROOT = Path(__file__).resolve().parents[2]
FORMS = ["lesson_ddp", "hooks_ddp", "flat_ddp", "ring_ddp", "flagged_ddp", "functions_only"]
CHECKS = ["loop", "strategies", "faq/test_mean_not_sum.py", "lessons/test_bucket.py", "trouble/test_resists.py"]
THREE_RANKS = "3 or buckets or main_cost"  # a choice of the checks: three ranks hide the least


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("report")
    command = [sys.executable, "-m", "pytest", "-q", "-k", THREE_RANKS, f"--report={folder}"]
    command += ["--hypothesis-profile=quick"]
    command += [f"--impl=tests/variants/{form}.py" for form in FORMS]
    command += [f"conformance/{path}" for path in CHECKS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    found: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_correct_form_breaks_no_claim(report: dict[str, Any], form: str) -> None:
    verdicts = {r["claim"]: r["verdict"] for r in report["results"] if form in r["impl"]}
    assert set(verdicts.values()) <= {"holds", "not-provided"}
    assert verdicts["loop.mean"] == "holds"


def _verdicts(report: dict[str, Any], form: str, claim: str) -> dict[str, str]:
    found = [r for r in report["results"] if form in r["impl"] and r["claim"] == claim]
    assert found
    return {r["verdict"]: r["message"] for r in found}


def test_a_wrapper_that_reduces_after_backward_is_told_that_it_overlaps_nothing(report: dict[str, Any]) -> None:
    ((verdict, message),) = _verdicts(report, "lesson_ddp", "strategies.ddp.link").items()
    assert verdict == "not-provided"
    assert "after backward() has returned" in message


def test_a_wrapper_that_reduces_from_hooks_overlaps(report: dict[str, Any]) -> None:
    assert list(_verdicts(report, "hooks_ddp", "strategies.ddp.link")) == ["holds"]


def test_a_wrapper_without_buckets_is_told_so(report: dict[str, Any]) -> None:
    assert list(_verdicts(report, "flat_ddp", "defaults.bucket")) == ["not-provided"]
