"""The whole suite on the reference implementation, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Ratio, benchmark

ROOT = Path(__file__).resolve().parents[1]


@benchmark("suite")
def suite_on_the_reference() -> Iterator[Ratio]:
    """Wall-clock seconds of ``pytest -n 4`` for one implementation; must end with status 0."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "4", f"--report={folder}"]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        took = time.perf_counter() - start
        if done.returncode != 0:
            raise RuntimeError(f"the suite ended with status {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}")
        report = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))
    checked = sum(result["verdict"] != "not-checked" for result in report["results"])
    yield Ratio(
        name="suite.pytest-n-4",
        value=took,
        unit="s",
        against=f"nothing; {checked} checks of the reference",
        target="<= 60",
    )
