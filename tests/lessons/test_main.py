"""What all lessons have in common: help that teaches, files that can be written, and what Ctrl-C leaves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.world.server import ADDRESS_VARIABLE
from lessons import paths
from lessons.__main__ import INTERRUPTED, LESSONS, Lesson, main

ROOT = Path(__file__).resolve().parents[2]
ENDLESS = """
import os, time

def train(rank, world_size, **_):
    with open(os.path.join(os.path.dirname(__file__), f"pid-{rank}"), "w") as fifo:
        fifo.write(str(os.getpid()))
    while True:
        time.sleep(60)
"""


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_the_help_of_a_lesson_has_commands_to_try_and_a_source(
    lesson: Lesson, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([lesson.name, "--help"])
    told = capsys.readouterr().out.partition("\n\n")[2].partition("options:")[0]
    assert f"python -m lessons {lesson.name}" in told
    assert "Source" in told


def test_an_interrupted_lesson_says_so_in_a_line_and_leaves_no_rank(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ENDLESS)
    fifos = [tmp_path / f"pid-{rank}" for rank in range(2)]
    for fifo in fifos:
        os.mkfifo(fifo)
    command = [sys.executable, "-m", "lessons", "ddp", f"--impl={tmp_path / 'mine.py'}", "--no-write"]
    alone = {name: value for name, value in os.environ.items() if name != ADDRESS_VARIABLE}  # with its own server
    lesson = subprocess.Popen(
        command, cwd=ROOT, env=alone, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    pids = [int(fifo.read_text()) for fifo in fifos]  # comes when the ranks are in their training
    os.killpg(lesson.pid, signal.SIGINT)
    out, err = lesson.communicate(timeout=60)
    assert (lesson.returncode, out) == (INTERRUPTED, "")
    assert err.strip() == "Interrupted: lesson ddp came to no end; its ranks are gone."
    assert [pid for pid in pids if _runs(pid)] == []


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("path", "endings", "makes_folders", "told"),
    [
        ("curves.txt", paths.PICTURES, False, "give the path the ending .svg or .png"),
        ("nowhere/curves.svg", paths.PICTURES, False, "there is no folder .*nowhere; make it first"),
        ("folder.svg", paths.PICTURES, False, "this is a folder; give the path of a file"),
        ("file/curves.svg", paths.PICTURES, True, r"nothing can be written in .*file \(Not a directory\)"),
    ],
)
def test_a_path_that_is_of_no_use_is_told(
    tmp_path: Path, path: str, endings: tuple[str, ...], makes_folders: bool, told: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.svg").mkdir()
    found = paths.trouble("--plot", tmp_path / path, endings, makes_folders=makes_folders)
    assert found.startswith(f"--plot {tmp_path / path}: ")
    assert re.search(told, found)


@pytest.mark.parametrize("path", ["curves.svg", "deep/er/curves.svg"])
def test_a_path_that_can_be_written_is_looked_at_and_left_alone(tmp_path: Path, path: str) -> None:
    assert paths.trouble("--plot", tmp_path / path, paths.PICTURES, makes_folders=True) == ""
    assert list(tmp_path.iterdir()) == []
