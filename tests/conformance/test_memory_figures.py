"""Memory figures of what cannot be weighed at full size, of what has one convention alone, and of what keeps more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conformance.conftest import ROOT

ASKS_FOR_VALUES = """
from impls.reference.fsdp import fully_shard as sharded

def fully_shard(module, group=None, reshard_after_forward=True):
    assert bool(next(module.parameters()).isfinite().all())
    return sharded(module, group, reshard_after_forward)
"""
WITHOUT_MASTER = """
from impls.reference.mixed_precision import MixedPrecision as Mixed

class MixedPrecision(Mixed):
    def __init__(self, params, optimizer_cls, **kwargs):
        super().__init__(params, optimizer_cls, master=False, **kwargs)
"""


@pytest.fixture
def results(tmp_path):
    """What the checks of the memory figures find out about a source, by claim."""

    def check(source, choice):
        impl = tmp_path / "mine.py"
        impl.write_text(source)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--impl={impl}", "-k", choice]
        subprocess.run(
            [*command, f"--report={tmp_path}", "conformance/memory"],
            cwd=ROOT,
            capture_output=True,
            check=False,
            timeout=280,
        )
        report = json.loads((tmp_path / "report.json").read_text())
        return {r["claim"]: r for r in report["results"] if r["verdict"] not in ("not-checked", "not-provided")}

    return check


def test_what_looks_at_values_is_measured_on_real_ranks_alone(results):
    found = results(ASKS_FOR_VALUES, "70b")["memory.fsdp-70b"]
    assert found["verdict"] == "holds"
    assert "not weighed at full size" in found["message"]
    assert "DataDependentOutputException" in found["message"]
    assert "4 ranks, all FP32: parameters 1, gradients 1" in found["message"]


def test_one_convention_is_judged_by_its_own_figures(results):
    found = results(WITHOUT_MASTER, "7b or 16_bytes")
    assert found["memory.mixed-7b"]["verdict"] == "holds"
    assert "84 GB for 7e9 parameters" in found["memory.mixed-7b"]["message"]
    assert found["memory.mixed-16p"]["verdict"] == "violated"
    assert found["memory.mixed-16p"]["observed"].startswith("8")
