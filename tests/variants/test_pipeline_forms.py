"""Right pipelines in forms that people hand in: no check of execution accuses one, and each holds what it provides."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(600)  # one run over five implementations

ROOT = Path(__file__).resolve().parents[2]
CHECKS = [
    f"conformance/pipeline/test_{name}.py"
    for name in ("equivalence", "equivalence_stages", "order", "split", "live_activations", "measured")
]
EQUAL, ORDER, MEMORY, SPLIT = (f"pipeline.{what}" for what in ("equivalence", "order", "1f1b.memory", "zb.split"))
HOLDS = {
    "pipeline_gpipe_blocking": {EQUAL, ORDER},
    "pipeline_1f1b_batched": {EQUAL, ORDER, MEMORY},
    "pipeline_of_a_batch": {EQUAL, ORDER, MEMORY},
    "pipeline_each_schedule": {EQUAL, ORDER, MEMORY},
    "pipeline_zero_bubble": {EQUAL, ORDER, SPLIT},
}
Results = Mapping[str, list[dict[str, str]]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """By form, the results of one run over all of them."""
    folder = tmp_path_factory.mktemp("report")
    impls = [f"--impl={ROOT / 'tests' / 'variants' / name}.py" for name in HOLDS]
    command = [sys.executable, "-m", "pytest", *CHECKS, *impls, f"--report={folder}", "-q", "-p", "no:cacheprovider"]
    command += ["-k", "(1f1b or gpipe or zb_h1 or few) and not interleaved", "--hypothesis-profile=quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580, check=False)
    assert (folder / "report.json").exists(), done.stdout[-4000:] + done.stderr
    found = defaultdict(list)
    for result in json.loads((folder / "report.json").read_text(encoding="utf-8"))["results"]:
        found[Path(result["impl"]).stem].append(result)
    return found


@pytest.mark.parametrize("name", HOLDS)
def test_no_check_accuses_a_right_pipeline(results: Results, name: str) -> None:
    accused = [r for r in results[name] if not Verdict(r["verdict"]).is_passing]
    assert [(r["claim"], r["case"], r["verdict"], r["message"]) for r in accused] == []


@pytest.mark.parametrize("name", HOLDS)
def test_a_right_pipeline_holds_what_it_provides(results: Results, name: str) -> None:
    held = {r["claim"] for r in results[name] if r["verdict"] == Verdict.HOLDS}
    assert HOLDS[name] <= held


def test_a_mean_is_taken_for_the_losses_of_a_whole_batch(results: Results) -> None:
    (losses,) = [
        r for r in results["pipeline_of_a_batch"] if r["case"].startswith("test_losses_are") and "1f1b" in r["case"]
    ]
    assert losses["verdict"] == Verdict.HOLDS


def test_a_pipeline_without_a_schedule_is_told_which_one_it_runs(results: Results) -> None:
    told = [r["message"] for r in results["pipeline_gpipe_blocking"] if r["claim"] in (ORDER, MEMORY)]
    assert any("takes no schedule, and what it runs is gpipe" in message for message in told)
