"""The doctor as its users run it: a process, its words, its exit status, and its JSON, which always fits the schema."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
SCHEMA = json.loads((ROOT / "fixtures" / "doctor" / "report.schema.json").read_text())
LIMIT_S = 120.0  # many times what a run takes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the doctor."""

    status: int
    out: str
    told: str  # its stderr
    json: dict[str, Any]

    @property
    def first(self) -> dict[str, Any]:
        """The finding that is the cause."""
        found: dict[str, Any] = self.json["findings"][0]
        return found


def command(*arguments: str) -> list[str]:
    """The doctor's command line."""
    return [sys.executable, "-m", "fixtures.doctor", *arguments]


def environment() -> dict[str, str]:
    """As in a terminal of the user, with Lockstep importable from anywhere."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def doctor(tmp_path: Path, script: str, *arguments: str, nproc: int | None = 3, options: tuple[str, ...] = ()) -> Run:
    """Run a script of the folder ``scripts`` to its end."""
    report = tmp_path / "report.json"
    ranks = () if nproc is None else (f"--nproc={nproc}",)
    target = ("-m", script) if "." in script and not script.endswith(".py") else (str(SCRIPTS / script),)
    done = subprocess.run(
        command(*ranks, f"--json={report}", *options, "--", *target, *arguments),
        capture_output=True,
        text=True,
        env=environment(),
        cwd=ROOT,
        timeout=LIMIT_S,
        check=False,
    )
    found = json.loads(report.read_text()) if report.exists() and report.stat().st_size else {}
    if found:
        jsonschema.validate(found, SCHEMA)
    return Run(status=done.returncode, out=done.stdout, told=done.stderr, json=found)


def line_of(script: str, text: str) -> str:
    """``scripts/NAME:line`` of the first line of a script that has this text."""
    lines = (SCRIPTS / script).read_text().splitlines()
    return f"scripts/{script}:{next(number for number, line in enumerate(lines, 1) if text in line)}"
