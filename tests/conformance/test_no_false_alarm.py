"""Correct collectives in forms that people hand in: every check lets them pass, and claims what they really do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(600)  # one run over five implementations

ROOT = Path(__file__).resolve().parents[2]
CHECKS = (
    "conformance/collectives",
    "conformance/loop/test_zero_calls.py",
    "conformance/faq/test_why_reduce_scatter.py",
    "conformance/lessons/test_recv_timeout.py",
)
RING = {"collectives.values.allreduce", "collectives.agreement", "collectives.ring.bytes", "collectives.ring.steps"}
GATHER = {f"collectives.{what}" for what in ("values.allgather", "allgather.bytes", "allgather.steps")}
SCATTER = {f"collectives.{what}" for what in ("values.reduce-scatter", "reduce-scatter.bytes", "reduce-scatter.steps")}
TREE = {"collectives.values.allreduce", "collectives.agreement", "collectives.tree.bytes", "collectives.tree.steps"}
BROADCAST = {"collectives.values.broadcast"}
CALLS = {"calls.reduce-scatter", "calls.all-gather", "faq.why-reduce-scatter"}
VALUES = {"collectives.values.allreduce", "collectives.values.allgather", "collectives.values.reduce-scatter"}

HOLDS = {
    "in_place_ring": RING | GATHER | SCATTER | BROADCAST,
    "isend_ring": RING | GATHER | SCATTER | CALLS,
    "other_trees": TREE | BROADCAST,
    "lesson_mesh": RING | {"collectives.queue-mesh", "defaults.recv-timeout"},
    "library_ring": VALUES | {"collectives.agreement"},
}
NO_SENDS = {f"collectives.{what}" for what in ("ring.bytes", "ring.steps", "tree.bytes", "allgather.steps")}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[dict[str, Any]]]:
    """The results of one run over all variants, by variant."""
    folder = tmp_path_factory.mktemp("report")
    impls = [f"--impl={ROOT / 'tests' / 'variants' / name}.py" for name in HOLDS]
    command = [sys.executable, "-m", "pytest", *CHECKS, *impls, f"--report={folder}", "-q", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile=quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580, check=False)
    assert (folder / "report.json").exists(), done.stdout + done.stderr
    report = json.loads((folder / "report.json").read_text())
    return {name: [r for r in report["results"] if Path(r["impl"]).stem == name] for name in HOLDS}


@pytest.mark.parametrize("name", HOLDS)
def test_no_check_accuses_a_correct_variant(results: Mapping[str, list[dict[str, Any]]], name: str) -> None:
    assert results[name]
    accused = [r for r in results[name] if not Verdict(r["verdict"]).is_passing]
    assert [(r["claim"], r["case"], r["message"]) for r in accused] == []


@pytest.mark.parametrize("name", HOLDS)
def test_a_correct_variant_holds_what_it_provides(results: Mapping[str, list[dict[str, Any]]], name: str) -> None:
    held = {r["claim"] for r in results[name] if r["verdict"] == Verdict.HOLDS}
    assert HOLDS[name] - held == set()


def test_a_ring_of_the_library_has_its_values_judged_and_is_told_why_not_its_sends(
    results: Mapping[str, list[dict[str, Any]]],
) -> None:
    rows = [r for r in results["library_ring"] if r["claim"] in NO_SENDS]
    assert {r["claim"] for r in rows} == NO_SENDS
    assert {r["verdict"] for r in rows} == {Verdict.NOT_PROVIDED}
    assert all("leaves the work to the library" in r["message"] for r in rows)
