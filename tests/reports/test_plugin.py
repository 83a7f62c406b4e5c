"""The plug-in in a pytest of its own; a small plug-in plays the checks that hand a record over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reports import build

ROOT = Path(__file__).parents[2]

CHECKS = """
import dataclasses, pathlib, pytest

class Spec:
    def pytest_lockstep_record(self, config, record, folder): ...

def pytest_addhooks(pluginmanager):
    pluginmanager.add_hookspecs(Spec)

def pytest_addoption(parser):
    parser.addoption("--folder")
    parser.addoption("--collected", type=int)

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    option = session.config.option
    if option.folder and not hasattr(session.config, "workerinput"):
        from tests.reports import sample
        record = sample.record()
        if option.collected is not None:
            record = dataclasses.replace(record, collected=option.collected)
        folder = pathlib.Path(option.folder)
        session.config.hook.pytest_lockstep_record(config=session.config, record=record, folder=folder)
"""


def pytest_run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "checks.py").write_text(CHECKS, encoding="utf-8")
    (folder / "test_one.py").write_text("def test_one(): pass\n", encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", encoding="utf-8")
    (folder / "temporary").mkdir()
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment = {**inherited, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "TMPDIR": str(folder / "temporary")}
    command = [sys.executable, "-m", "pytest", "-p", "checks", "-p", "reports.plugin", "test_one.py", *options]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_leaves_json_html_and_junit_and_says_where(tmp_path: Path, workers: str) -> None:
    run = pytest_run(tmp_path, "--folder=out", "-n", workers)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "report: out/report.html (beside it: report.json, junit.xml)" in run.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["junit.xml", "report.html", "report.json"]
    build.load(tmp_path / "out" / "report.json")
    tests = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot().iter("testcase")
    assert [test.get("name") for test in tests] == ["test_one"]
    assert list((tmp_path / "temporary").glob("lockstep-*")) == []


def test_a_run_without_a_record_leaves_nothing_and_says_nothing(tmp_path: Path) -> None:
    run = pytest_run(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "report" not in run.stdout.replace("reports", "")
    assert "junit" not in run.stdout
    assert list((tmp_path / "temporary").glob("lockstep-*")) == []


def test_the_users_own_junit_path_is_left_alone(tmp_path: Path) -> None:
    run = pytest_run(tmp_path, "--folder=out", "--junitxml=mine.xml")
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "mine.xml").exists()
    assert not (tmp_path / "out" / "junit.xml").exists()


def test_a_folder_that_cannot_be_written_is_one_sentence_and_no_success(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("", encoding="utf-8")
    run = pytest_run(tmp_path, "--folder=out")
    assert run.returncode != 0
    assert "there is no report of this run" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_a_record_that_lost_a_result_is_reported_and_no_success(tmp_path: Path) -> None:
    run = pytest_run(tmp_path, "--folder=out", "--collected=1000")
    assert run.returncode != 0
    assert "a fault of the suite" in run.stdout
    assert (tmp_path / "out" / "report.html").exists()
