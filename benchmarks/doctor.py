"""What the doctor costs a DDP script, and how soon after the last operation it knows of a deadlock."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Ratio, benchmark
from fixtures.doctor.launch import as_torchrun, free_port
from fixtures.world import kernel

RANKS = 2
ROUNDS = 5
ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "scripts" / "train_ddp.py"
HANGING = ROOT / "tests" / "doctor" / "scripts"


def _plain() -> tuple[float, float]:
    """Seconds of the whole script and of its steps, by itself."""
    began, port = time.perf_counter(), free_port()
    processes = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": kernel.LOOPBACK,
                **as_torchrun(rank, RANKS, port),
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    printed = [process.communicate()[0] for process in processes]
    return time.perf_counter() - began, float(printed[0].split()[-1])


def _doctored() -> tuple[float, float]:
    """The same under the doctor."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "fixtures.doctor", "-q", f"--nproc={RANKS}", "--", str(SCRIPT)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - began, float(done.stdout.split()[-1])


def _told_after(script: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "fixtures.doctor", "-q", "--nproc=3", f"--json={report}", "--"]
        subprocess.run([*command, str(HANGING / script)], cwd=ROOT, capture_output=True, check=False)
        return float(json.loads(report.read_text())["told_after_s"] or float("inf"))


@benchmark("doctor")
def doctor_costs() -> Iterator[Ratio]:
    """A DDP script under the doctor against the same by itself, turn by turn; then deadlocks."""
    pairs = [(_plain(), _doctored()) for _ in range(ROUNDS)]
    # The fastest of each, like for like: what a busy machine adds is not the doctor's.
    plain, doctored = (tuple(map(min, zip(*side, strict=True))) for side in zip(*pairs, strict=True))
    yield Ratio(
        name="doctor.script",
        value=doctored[0] / plain[0],
        unit="times as long",
        against=f"the DDP script by itself ({plain[0]:.2f} s)",
        target="<= 1.3",
    )
    yield Ratio(
        name="doctor.steps",
        value=doctored[1] / plain[1],
        unit="times as long",
        against=f"its training steps alone ({plain[1] * 1e3:.0f} ms for 15)",
        target="<= 1.3",
    )
    told = [_told_after(script) for script in ("collective_under_if.py", "sub_group.py") for _ in range(ROUNDS)]
    for name, value in (("median", statistics.median(told)), ("worst", max(told))):
        yield Ratio(
            name=f"doctor.deadlock-known.{name}",
            value=value,
            unit="seconds",
            against="the last operation that any rank issued",
            target="<= 1",
        )
