"""A failure mode examines the cure of whoever provides one; the reference's stands in only when it is asked for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conformance.conftest import ROOT

CURE = "cure_missing_broadcast"
OTHER = "def all_reduce(tensor):\n    return tensor\n"
EMPTY = f"def {CURE}(module):\n    raise NotImplementedError\n"
OWN = f"from impls.reference.cures import {CURE} as theirs\n\ndef {CURE}(module):\n    theirs(module)\n"


@pytest.mark.parametrize(
    ("source", "options", "verdict", "whose"),
    [
        pytest.param(OTHER, [], "not-provided", None, id="no cure"),
        pytest.param(EMPTY, [], "not-provided", None, id="an empty cure"),
        pytest.param(OTHER, ["--scenario=missing-broadcast"], "holds", True, id="no cure, and asked for"),
        pytest.param(OWN, [], "holds", False, id="a cure of its own"),
    ],
)
def test_cure_that_is_not_provided_is_no_success(tmp_path, source, options, verdict, whose):
    impl = tmp_path / "mine.py"
    impl.write_text(source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--impl={impl}", *options]
    done = subprocess.run(
        [*command, f"--report={tmp_path}", "-k", "missing-broadcast", "conformance/trouble"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    report = json.loads((tmp_path / "report.json").read_text())
    (result,) = report["results"]
    assert result["verdict"] == verdict, done.stdout
    if whose is None:
        assert f"provides no {CURE}" in result["message"]
        assert "mine.py: nothing was examined" in done.stdout
    else:
        (story,) = report["scenarios"]
        (cure,) = [line for line in story["evidence"] if line.startswith("cure: ")]
        assert ("by the reference's" in cure) is whose


def test_the_server_can_begin_before_this_process_has_imported_torch() -> None:
    """A second of each story: both import torch at the same time."""
    looked = subprocess.run(
        [sys.executable, "-c", "import sys, conformance.plugin; sys.exit('torch' in sys.modules)"],
        cwd=ROOT,
        check=False,
    )
    assert looked.returncode == 0
