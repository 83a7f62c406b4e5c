"""Right schedules and bubbles, written otherwise than ours, break no claim; torch's orders do not either."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]
CHECKS = [
    f"conformance/pipeline/test_{name}.py" for name in ("gpipe_and_1f1b", "growth", "copies", "overlap", "simulators")
]
GPIPE_AND_1F1B = {
    "pipeline.gpipe.bubble",
    *(f"pipeline.{what}" for what in ("1f1b.same-bubble", "1f1b.memory")),
    *(f"pipeline.{what}.1f1b" for what in ("copies", "overlap", "bubble-growth")),
}
ZERO_BUBBLE = {f"pipeline.{what}.zb" for what in ("copies", "overlap", "bubble-growth")}
HOLDS = {
    "tests/variants/schedules_by_rank.py": GPIPE_AND_1F1B
    | ZERO_BUBBLE
    | {"pipeline.zb.split", "pipeline.simulators.zb"},
    "tests/variants/schedules_by_cycle.py": GPIPE_AND_1F1B | {"pipeline.simulators.1f1b"},
    "torch": GPIPE_AND_1F1B
    | ZERO_BUBBLE
    | {f"pipeline.{what}.dualpipev" for what in ("copies", "overlap", "bubble-growth")},
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, set[str]]]:
    """By implementation and claim, the verdicts of one run over all of them."""
    folder = tmp_path_factory.mktemp("report")
    command = [sys.executable, "-m", "pytest", *CHECKS, *(f"--impl={name}" for name in HOLDS), f"--report={folder}"]
    command += ["-q", "--hypothesis-profile=quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert (folder / "report.json").exists(), done.stdout[-4000:] + done.stderr
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for result in json.loads((folder / "report.json").read_text(encoding="utf-8"))["results"]:
        impl = next(name for name in HOLDS if Path(name).stem == Path(result["impl"]).stem)
        found[impl][result["claim"]].add(result["verdict"])
        if not Verdict(result["verdict"]).is_passing:
            found[impl][result["claim"]].add(result["message"])
    return found


@pytest.mark.parametrize("name", HOLDS)
def test_what_is_right_is_told_so_in_whatever_form(verdicts: Mapping[str, Mapping[str, set[str]]], name: str) -> None:
    assert {claim for claim, found in verdicts[name].items() if "holds" in found} == HOLDS[name]
    allowed = {"holds", "not-provided"} | ({"refuses"} if name == "torch" else set())  # M < N, as its manifest says
    assert {claim: found for claim, found in verdicts[name].items() if found - allowed} == {}
