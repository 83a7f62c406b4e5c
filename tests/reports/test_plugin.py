"""The plug-in in a pytest of its own; a small plug-in plays the checks that hand a record over."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reports import build, closing
from tests.reports import sample

ROOT = Path(__file__).parents[2]
Place = tuple[Path, subprocess.CompletedProcess[str]]

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


@pytest.fixture(scope="module", params=["0", "1"], ids=["without workers", "with a worker"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("run")
    (folder / "test_more.py").write_text("def test_two(): pass\ndef test_three(): pass\n", encoding="utf-8")
    return folder, pytest_run(folder, "test_more.py", "--folder=out", "--progress=1e-9", "-n", str(request.param))


def test_a_run_leaves_its_report_and_says_where(place: Place) -> None:
    folder, run = place
    assert run.returncode == 0, run.stdout + run.stderr
    assert "report: out/report.html (beside it: report.json, report.md, badge.svg, junit.xml)" in run.stdout
    names = {path.name for path in (folder / "out").iterdir()}
    assert names == {"report.html", "report.json", "report.md", "badge.svg", "junit.xml"}
    build.load(folder / "out" / "report.json")
    tests = ElementTree.parse(folder / "out" / "junit.xml").getroot().iter("testcase")
    assert [test.get("name") for test in tests] == ["test_one", "test_two", "test_three"]
    assert list((folder / "temporary").glob("lockstep-*")) == []


def test_the_last_lines_say_what_came_out_and_where_to_start(place: Place) -> None:
    _, run = place
    block = run.stdout[run.stdout.index(" Result ") :].splitlines()
    assert len(block) - 2 <= closing.MAX_LINES  # its own head and pytest's last line
    assert any(line.startswith("mine ") and "1 hangs" in line for line in block)
    assert any(line.startswith("start here: collectives.ring.bytes violated (mine, core)") for line in block)


def test_a_run_says_how_far_it_is(place: Place) -> None:
    _, run = place
    lines = [line for line in run.stdout.splitlines() if line.startswith("lockstep: ")]
    assert [line.partition(" after")[0] for line in lines] == ["lockstep: 1 of 3", "lockstep: 2 of 3"]


def test_a_run_without_a_record_leaves_nothing_and_says_nothing(tmp_path: Path) -> None:
    run = pytest_run(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "report" not in run.stdout.replace("reports", "")
    assert "junit" not in run.stdout
    assert "lockstep: " not in run.stdout  # it took no minute
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


def test_a_baseline_gives_each_result_its_earlier_verdict(tmp_path: Path) -> None:
    old = build.build(sample.record())
    old["results"] = [{**r, "case": "gone"} if r["claim"] == "loop.mean" else r for r in old["results"]]
    old["results"] = [r for r in old["results"] if r["case"] != "gone"]
    old["collected"] = old["reported"] = len(old["results"])
    old["summary"] = {info["name"]: {} for info in old["impls"]}
    for result in old["results"]:
        counts = old["summary"][result["impl"]]
        counts[result["verdict"]] = counts.get(result["verdict"], 0) + 1
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.json").write_text(build.dumps(old), encoding="utf-8")
    run = pytest_run(tmp_path, "--folder=out", "--baseline=out")  # the folder that the run overwrites
    assert run.returncode == 0, run.stdout + run.stderr
    report = build.load(tmp_path / "out" / "report.json")
    assert {r["before"] for r in report["results"] if r["claim"] == "loop.mean"} == {None}
    assert all(r["before"] == r["verdict"] for r in report["results"] if r["claim"] != "loop.mean")
    assert report["baseline"]["id"] == old["run"]["id"]
    assert "**Since 2025-03-14" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_a_baseline_without_a_result_in_common_is_told_and_costs_nothing(tmp_path: Path) -> None:
    old = build.build(dataclasses.replace(sample.record(), impls=(), results=(), scenarios=(), collected=0))
    (tmp_path / "old.json").write_text(build.dumps(old), encoding="utf-8")
    run = pytest_run(tmp_path, "--folder=out", "--baseline=old.json")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "--baseline says nothing here" in run.stdout


def test_a_baseline_that_cannot_be_used_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"schema_version": "9.0"}', encoding="utf-8")
    run = pytest_run(tmp_path, "--folder=out", "--baseline=old.json")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--baseline=old.json cannot be used" in run.stderr
    assert not (tmp_path / "out").exists()


def test_a_pace_that_is_none_is_refused(tmp_path: Path) -> None:
    run = pytest_run(tmp_path, "--progress=-1")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--progress=-1 is no number of seconds" in run.stderr
