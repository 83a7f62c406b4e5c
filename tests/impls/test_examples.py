"""Every example is recognised for what it is, and the suite says of it what the table beside it declares."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(400)  # a run over up to twenty implementations

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "tests" / "examples"
GROUPS: dict[str, Any] = tomllib.loads((HOME / "verdicts.toml").read_text(encoding="utf-8"))
SILENT = ("not-provided", "not-checked")


def _spec(example: str) -> str:
    """As --impl takes it: a table of adapters lies beside the example."""
    return str(HOME / example).replace("?adapters=", f"?adapters={HOME}/")


def _declared(verdicts: dict[str, list[str]]) -> dict[str, set[str]]:
    """By claim and tier the verdicts that its cases have."""
    found = defaultdict(set)
    for verdict, claims in verdicts.items():
        for claim in claims:
            found[claim].add(verdict)
    return dict(found)


@pytest.mark.parametrize("group", GROUPS)
def test_the_suite_says_of_each_example_what_is_declared(group: str, tmp_path: Path) -> None:
    plan = GROUPS[group]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--report={tmp_path}"]
    command += [f"--impl={_spec(example)}" for example in plan["of"]]
    command += [f"conformance/{check}" for check in plan["checks"]] + ["-k", plan["select"].replace("\n", " ")]
    command += ["--hypothesis-profile=quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=380, check=False)
    assert (tmp_path / "report.json").exists(), done.stdout[-4000:] + done.stderr
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    names = dict(zip([impl["name"] for impl in report["impls"]], plan["of"], strict=True))
    found: dict[str, dict[str, set[str]]] = {example: defaultdict(set) for example in plan["of"]}
    for result in report["results"]:
        if result["verdict"] not in SILENT:
            found[names[result["impl"]]][f"{result['claim']} {result['tier']}"].add(result["verdict"])
    assert found == {example: _declared(verdicts) for example, verdicts in plan["of"].items()}


def test_every_example_is_in_the_table() -> None:
    told = {example.partition("?")[0].partition(":")[0] for plan in GROUPS.values() for example in plan["of"]}
    helpers = {"course_parts.py", "their_package/__init__.py", "their_package/reduce.py"}
    there = {str(path.relative_to(HOME)) for path in HOME.rglob("*.py")}
    assert there - told == helpers
