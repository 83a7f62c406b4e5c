"""What grading a course costs: seconds for each hand-in under a typical rubric, one at a time and several."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Ratio, benchmark

ROOT = Path(__file__).resolve().parents[1]
NUM_HAND_INS = 4
RUBRIC = """
name = "Typical"
assigned = ["DataParallel", "collectives"]
[[weight]]
claims = ["loop.mean", "loop.construct-broadcast", "loop.step", "collectives.values.*"]
core = 2
"""
HAND_IN = "from impls.reference import *  # noqa: F403\nfrom impls.reference import DataParallel, ring_allreduce\n"


@benchmark("grading")
def grading_of_the_reference() -> Iterator[Ratio]:
    """Wall-clock seconds for each of four hand-ins that hold everything, by the number of jobs."""
    alone = _seconds_each(1)
    yield Ratio(
        name="grading.one-job", value=alone, unit="s per hand-in", against="nothing; core of collectives and DDP"
    )
    jobs = max(2, min(NUM_HAND_INS, os.cpu_count() or 1))
    side_by_side = _seconds_each(jobs)
    yield Ratio(
        name=f"grading.{jobs}-jobs",
        value=alone / side_by_side,
        unit="x faster",
        against=f"one job, on {os.cpu_count()} cores",
        target=">= 1.1",
    )


def _seconds_each(jobs: int) -> float:
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "hand-ins").mkdir()
        (Path(home) / "rubric.toml").write_text(RUBRIC, encoding="utf-8")
        for number in range(NUM_HAND_INS):
            (Path(home) / "hand-ins" / f"student {number}.py").write_text(HAND_IN, encoding="utf-8")
        command = [sys.executable, "-m", "conformance", "grade", f"{home}/hand-ins", f"--rubric={home}/rubric.toml"]
        began = time.perf_counter()
        done = subprocess.run(
            [*command, f"--out={home}/grades", f"--jobs={jobs}"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        took = time.perf_counter() - began
        if done.returncode != 0:
            raise RuntimeError(f"grading ended with status {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}")
    return took / NUM_HAND_INS
