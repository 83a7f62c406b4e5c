"""However a right pipeline sends its activations, no claim about its traffic and memory is broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORMS = ["pipeline_of_pairs", "pipeline_of_pickles", "pipeline_in_pieces"]
CHECKS = [f"conformance/strategies/test_pipeline_{claim}.py" for claim in ("traffic", "memory", "link")]
THREE_RANKS = "3 and not gpipe and not other_schedules"  # three ranks hide the least


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("report")
    command = [sys.executable, "-m", "pytest", "-q", "-k", THREE_RANKS, f"--report={folder}", *CHECKS]
    command += [f"--impl=tests/variants/{form}.py" for form in FORMS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    found: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_pipeline_of_another_form_sends_and_holds_what_it_should(report: dict[str, Any], form: str) -> None:
    verdicts = {r["claim"]: r["verdict"] for r in report["results"] if form in r["impl"] and r["tier"] == "core"}
    claims = [f"strategies.pipeline.{what}" for what in ("traffic", "memory", "link")]
    assert verdicts == dict.fromkeys(claims, "holds")
