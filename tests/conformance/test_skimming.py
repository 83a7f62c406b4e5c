"""A file of checks is left unread only where its text shows that none of its claims was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import skimming
from tests.conformance.conftest import ROOT

FILES = sorted((ROOT / "conformance").glob("*/test_*.py"))
CHECK = "from conformance.checks import claim\n\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_no_file_of_the_suite_is_beside_a_claim_that_it_checks(path: Path) -> None:
    beside = [claim for claim in skimming._named_in(path) if skimming.is_beside(path, {claim}, is_scenario=False)]
    assert beside == []


@pytest.mark.parametrize(
    ("text", "is_beside"),
    [
        ('@claim("loop.mean")', False),
        ('@claim(\n    "loop.mean",\n    tier="exotic")', False),
        ('@claim("loop.step")', True),
        ('MEAN = "loop.mean"\n@claim(MEAN)', False),
        ('STEP = "loop.step"\n@claim(STEP)', True),
        ("from programs import MEAN\n@claim(MEAN)", False),  # cannot be told
        ('@claim(f"loop.{name}")', False),
        ('@claim("loop.step")\n@claim(elsewhere.MEAN)', False),
        ("def test_of_somebodys(): ...", False),
    ],
)
def test_a_file_is_beside_when_all_its_claims_are_told_and_are_others(tmp_path, text, is_beside):
    path = tmp_path / "test_checks.py"
    path.write_text(CHECK + text, encoding="utf-8")
    assert skimming.is_beside(path, {"loop.mean"}, is_scenario=False) is is_beside


def test_other_files_are_not_judged(tmp_path):
    path = tmp_path / "programs.py"
    path.write_text('@claim("loop.step")', encoding="utf-8")
    assert not skimming.is_beside(path, {"loop.mean"}, is_scenario=True)


def test_a_run_of_one_claim_reads_no_file_of_others(make_place):
    check = CHECK + '@claim("loop.mean")\ndef test_it(judge):\n    judge.expect(1, 1)\n'
    place = make_place({"test_mine.py": check, "test_others.py": check.replace("mean", "step") + "raise SystemExit\n"})
    done = place.run("--claim=loop.mean")
    assert done.status == 0, done.text
    assert place.run("test_others.py", "--claim=loop.mean").status != 0, "a file that was named is read"
