"""A course is graded hand-in by hand-in: none stops the others, nothing is done twice, and nothing is left behind."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.__main__ import main
from fixtures.world import kernel
from tests.conformance.conftest import ROOT
from tests.world.waiting import until

RUBRIC = 'name = "One"\nassigned = ["all_reduce"]\n[[weight]]\nclaims = ["collectives.values.allreduce"]\ncore = 4\n'


@dataclasses.dataclass(frozen=True)
class Class:
    """A folder of hand-ins, and the place where they are graded."""

    home: Path

    @property
    def out(self) -> Path:
        return self.home / "grades"

    @property
    def examined(self) -> list[str]:
        """Name and time limit of each pytest that was started."""
        lines = (self.home / "log").read_text(encoding="utf-8").splitlines()
        return [line.partition(" ")[2] for line in lines]

    @property
    def pids(self) -> list[int]:
        return [int(line.split()[0]) for line in (self.home / "log").read_text(encoding="utf-8").splitlines()]

    @property
    def temporary(self) -> list[str]:
        return sorted(os.listdir(self.home / "tmp"))  # noqa: PTH208 names are enough

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-m",
            "tests.conformance.grading.course",
            str(self.home / "hand-ins"),
            f"--out={self.out}",
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "COURSE_LOG": str(self.home / "log"),
            "COURSE_OUT": str(self.out),
            "TMPDIR": str(self.home / "tmp"),
        }
        return subprocess.Popen(
            [*command, f"--rubric={self.home / 'rubric.toml'}", *options],
            env=environment,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def grade(self, *options: str) -> tuple[int, str]:
        process = self.start("--jobs=4", *options)
        text, _ = process.communicate(timeout=120)
        return process.returncode, text


def make(home: Path, hand_ins: Mapping[str, str]) -> Class:
    (home / "tmp").mkdir(parents=True)
    (home / "rubric.toml").write_text(RUBRIC, encoding="utf-8")
    for name, text in hand_ins.items():
        path = home / "hand-ins" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Class(home)


HAND_INS = {
    "alice.py": "x = 1",
    "bob smith/submission/ddp.py": "x = 1",
    "مریم کریمی/ddp.py": "x = 1",
    "kills.py": "kills",
    "plants.py": "plants",
    "unlucky.py": "unlucky",
    "leaves.py": "leaves",
    "waits.py": "waits",
    "eats.py": "eats",
    "notes.txt": "no hand-in",
    "zoe.zip": "no hand-in",
}
NONE = ("circle.py", "notes.txt", "zoe.zip")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Class:
    made = make(tmp_path_factory.mktemp("course"), HAND_INS)
    (made.home / "hand-ins" / "circle.py").symlink_to("circle.py")
    return made


@pytest.fixture(scope="module")
def done(course: Class) -> tuple[int, str]:
    return course.grade("--time-limit=3", "--memory-limit=200MB", "--seed=7")


def test_every_hand_in_has_its_line_whatever_its_name(done):
    status, text = done
    for name in ("alice.py", "bob smith", "مریم کریمی", "unlucky.py", "leaves.py"):
        assert f"{name}: 4 of 4 points" in text
    assert "9/9" in text
    assert "notes.txt: not read: neither" in text
    assert status == 1, "some grades are not final"


@pytest.mark.parametrize("name", ["kills.py", "plants.py", "waits.py"])
def test_hand_in_whose_pytest_does_not_end_well_earns_nothing_and_is_not_final(done, name):
    assert f"{name}: 0 of 4 points, not final: 4 are open" in done[1]


def test_a_rank_that_takes_too_much_memory_costs_its_check_only(done):
    assert "eats.py: 1 of 4 points (" in done[1]
    assert "1 ranks were killed" in done[1]


def test_what_the_suite_owes_is_tried_again(course, done):
    assert course.examined.count("unlucky.py 3") == 2
    assert course.examined.count("alice.py 3") == 1
    assert [line for line in course.examined if "kills" in line] == ["kills.py 3", "kills.py 3", "kills.py 0"]


def test_all_reports_go_into_one_matrix(course, done):
    merged = (course.out / "merged.txt").read_text(encoding="utf-8").splitlines()
    assert merged == sorted(name.partition("/")[0] for name in HAND_INS if name not in NONE)


def test_what_is_not_read_is_told_where_the_grades_are_with_what_to_do(course, done):
    remarks = json.loads((course.out / "remarks.json").read_text(encoding="utf-8"))
    assert remarks["zoe.zip"] == ["not read: an archive; unpack it into a folder"]
    assert remarks["circle.py"] == ["not read: a link that leads to nothing, or in a circle"]
    assert [name for name in NONE if name not in remarks] == []
    assert "attempt 1: ended with status -9; tried again" in remarks["kills.py"]


def test_nothing_is_left_behind(course, done):
    assert course.temporary == []
    assert not any(kernel.lives(pid) for pid in course.pids)


@pytest.mark.parametrize("name", ["class", "hand-ins", "grades.csv", "graded.jsonl", "ends with a space ", '=1+1, "x"'])
def test_no_name_is_in_the_way_of_what_is_written(tmp_path, name):
    course = make(tmp_path, {f"{name}/ddp.py": "x = 1", "a.py": "x = 1"})
    status, text = course.grade()
    assert status == 0, text
    assert f"{name}: 4 of 4 points" in text
    assert f"{name}: 4 of 4 points (as graded before)" in course.grade()[1]


def test_copy_has_a_name_that_a_report_can_show(tmp_path):
    course = make(tmp_path, {"\u202eyp.py": "x = 1"})
    status, text = course.grade()
    assert status == 0, text
    assert [path.name for path in (course.out / "hand-ins").glob("*/hand-in/*")] == ["_yp.py"]


def test_hand_in_that_cannot_be_copied_is_named_and_open_and_tried_the_next_time(tmp_path):
    course = make(tmp_path, {"a.py": "x = 1", "b/unreadable.py": "x = 1"})
    status, text = course.grade()
    assert status == 1
    assert "a.py: 4 of 4 points" in text
    assert "b: 0 of 4 points, not final: 4 are open" in text
    assert "unreadable.py: Permission denied" in text
    assert course.examined.count("b 600") == 0, "there is nothing to examine"
    (tmp_path / "hand-ins" / "b" / "unreadable.py").rename(tmp_path / "hand-ins" / "b" / "ddp.py")
    status, text = course.grade()
    assert (status, "b: 4 of 4 points" in text) == (0, True), text


def test_why_nothing_could_be_examined_is_told_in_one_line(tmp_path):
    text = make(tmp_path, {"a.py": "empty"}).grade()[1]
    assert "nothing could be examined: no such name" in text


def test_seed_reaches_every_run(course, done):
    assert '"seed": "7"' in (course.out / "hand-ins" / "alice.py" / "report.json").read_text(encoding="utf-8")


def test_same_command_does_only_what_is_new(course, done):
    options = ("--time-limit=3", "--memory-limit=200MB", "--seed=7")
    before = len(course.examined)
    (course.home / "hand-ins" / "alice.py").write_text("x = 2", encoding="utf-8")
    (course.out / "hand-ins" / "leaves.py" / "report.json").write_text("{}", encoding="utf-8")
    _, text = course.grade(*options)
    assert sorted(course.examined[before:]) == ["alice.py 3", "leaves.py 3"]
    assert "bob smith: 4 of 4 points (as graded before)" in text


def test_report_that_a_later_hand_in_touches_is_made_anew(tmp_path):
    course = make(tmp_path, {"a.py": "x = 1", "b.py": "tampers"})
    status, text = course.grade("--jobs=1")
    assert status == 0, text
    assert course.examined == ["a.py 600", "b.py 600", "a.py 600"]
    assert "a.py: 4 of 4 points" in text.splitlines()[-2]


@pytest.mark.parametrize(
    ("word", "told"),
    [("forged", "report.json is not what pytest wrote"), ("altered", "its files were changed while it was examined")],
)
def test_what_another_does_to_a_running_hand_in_gives_and_takes_no_points(tmp_path, word, told):
    made = make(tmp_path, {"a.py": word, "b.py": ""})
    status, text = made.grade()
    assert status == 1
    assert text.count(told) == 2  # of three attempts, the last of which examines nothing
    assert "b.py: 4 of 4 points" in text
    assert "not final: a.py" in text
    assert made.examined.count("a.py 600") == 2
    made.grade()
    assert made.examined.count("a.py 600") == 4  # it is tried anew, where others are known
    assert made.examined.count("b.py 600") == 1


def test_hand_in_that_names_the_suites_own_answers_is_remarked_upon(tmp_path):
    made = make(tmp_path, {"a.py": "from impls.reference.ring import *", "b.py": "# impls/torch_native", "c.py": ""})
    _, text = made.grade()
    assert "     a.py names impls.reference: is it its own work?" in text
    assert "     b.py names impls.torch_native: is it its own work?" in text
    assert text.count("own work") == 2


def test_how_hand_ins_are_taken_reaches_every_run_and_is_part_of_the_grade(tmp_path):
    course = make(tmp_path, {"a.py": "x = 1"})
    table = tmp_path / "table.toml"
    table.write_text("[adapters]\n", encoding="utf-8")
    options = (f"--adapters={table}", "--device-shim")
    assert course.grade(*options)[0] == 0
    report = course.out / "hand-ins" / "a.py" / "report.json"
    assert f'"taken": ["{table}", true]' in report.read_text(encoding="utf-8")
    assert "as graded before" in course.grade(*options)[1]
    table.write_text("[adapters]\nop = 'mean'\n", encoding="utf-8")
    assert "as graded before" not in course.grade(*options)[1]
    assert "as graded before" not in course.grade(options[0])[1]


def interrupt(course: Class, number: int, first: str) -> int:
    """Send the signal while the second hand-in is being examined; give the status of the run."""
    before = len(course.pids) if (course.home / "log").exists() else 0
    process = course.start("--jobs=1")
    assert process.stdout is not None
    with process:
        try:
            assert first in process.stdout.readline()
            until(lambda: course.examined[before:][-1:] == ["b.py 600"], "the second hand-in to be begun")
            process.send_signal(number)
            process.wait(timeout=60)
        finally:
            process.kill()
    until(lambda: not kernel.lives(course.pids[-1]), "its pytest to end")
    return process.returncode


def test_interrupted_run_goes_on_where_it_was(tmp_path):
    course = make(tmp_path, {"a.py": "x = 1", "b.py": "waits"})
    assert interrupt(course, signal.SIGKILL, "1/2  a.py: 4 of 4 points") == -signal.SIGKILL
    assert len(course.temporary) == 1, "whoever is killed clears nothing away"
    assert interrupt(course, signal.SIGINT, "1/2  a.py: 4 of 4 points (as graded before)") == 2
    assert course.temporary == []
    (course.home / "hand-ins" / "b.py").write_text("x = 1", encoding="utf-8")
    status, text = course.grade()
    assert status == 0, text
    assert course.examined.count("a.py 600") == 1
    assert course.temporary == []


def test_links_out_of_a_hand_in_are_left_out_and_named(tmp_path):
    course = make(tmp_path, {"a/ddp.py": "x = 1", "b/own.py": "x = 1", "b/data.txt": "1"})
    (course.home / "hand-ins" / "b" / "ddp.py").symlink_to("../a/ddp.py")
    (course.home / "hand-ins" / "b" / "same.py").symlink_to("own.py")
    _, text = course.grade()
    copy = course.out / "hand-ins" / "b" / "hand-in" / "b"
    assert sorted(path.name for path in copy.iterdir()) == ["data.txt", "own.py", "same.py"]
    assert f"ddp.py is a link to {(tmp_path / 'hand-ins' / 'a' / 'ddp.py').resolve()}, outside of the hand-in" in text


@pytest.mark.parametrize(
    ("files", "options", "told"),
    [
        ({"notes.txt": ""}, [], "has no hand-in"),
        ({"a.py": ""}, ["--rubric=none.toml"], "none.toml cannot be read"),
        ({"a.py": ""}, ["--adapters=none.toml"], "none.toml: it cannot be read"),
        ({"a.py": ""}, ["--memory-limit=lots"], "lots"),
        ({"a.py": ""}, ["--jobs=0"], "at least one"),
        ({"a.py": ""}, ["--rubric=circle"], "circle cannot be read: Too many levels of symbolic links"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_runs(tmp_path, monkeypatch, capfd, files, options, told):
    course = make(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "circle").symlink_to("circle")
    folders = [str(tmp_path / "hand-ins"), f"--out={course.out}", f"--rubric={tmp_path / 'rubric.toml'}"]
    try:
        status = main(["grade", *folders, *options])
    except SystemExit as ended:  # argparse's own refusals
        status = ended.code
    assert status in (2, 4)
    assert told in capfd.readouterr().err
    assert not course.out.exists() or not any(course.out.glob("**/report.json"))
