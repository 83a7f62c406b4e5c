"""An advisor of a few rules, and closed forms in the letters of the literature, break no claim."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_rules_of_thumb_and_other_letters_break_no_claim(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", f"--report={tmp_path}", "--impl=tests/variants/short_advisor.py"]
    command += ["conformance/choose", "conformance/collectives/test_times.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    results = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["results"]
    assert {result["verdict"] for result in results} == {"holds"}
    assert len(results) >= 19
