"""Advisors of a few rules, and closed forms in the letters of the literature, break no claim."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHORT, WORDS = "short_advisor.py", "words_advisor.py"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    report = tmp_path_factory.mktemp("report")
    command = [sys.executable, "-m", "pytest", "-q", f"--report={report}"]
    command += [f"--impl=tests/variants/{name}" for name in (SHORT, WORDS)]
    command += ["conformance/choose", "conformance/collectives/test_times.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads((report / "report.json").read_text(encoding="utf-8"))["results"]
    return found


def test_rules_of_thumb_and_other_letters_break_no_claim(results: list[dict[str, Any]]) -> None:
    own = [result for result in results if result["impl"] == SHORT]
    assert {result["verdict"] for result in own} == {"holds"}
    assert len(own) >= 20


def test_an_advisor_is_not_blamed_for_what_it_was_not_told(results: list[dict[str, Any]]) -> None:
    reasons = {
        result["case"]: result["message"]
        for result in results
        if result["impl"] == WORDS and result["verdict"] != "holds" and "crossover" not in result["message"]
    }
    assert "says no degree" in reasons.pop("test_tensor_parallel_groups_stay_in_a_node")
    assert reasons.keys() == {
        "test_a_heavy_all_to_all_is_hidden_where_two_copies_fit",
        "test_one_copy_hides_an_all_to_all_where_two_do_not_fit",
    }
    assert all("advise does not ask for all_to_all_share" in reason for reason in reasons.values())
