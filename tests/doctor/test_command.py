"""The command line: what runs, what is passed on, how it ends, and that nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.doctor.running import ROOT, SCRIPTS, command, doctor, environment
from tests.world.waiting import until


def test_a_script_gets_its_arguments_and_is_main(tmp_path: Path) -> None:
    run = doctor(tmp_path, "arguments.py", "--lines", "0", "--", "-x", nproc=2)
    assert run.status == 0, run.told
    assert run.out.splitlines()[0][4:] == f"words: ['-x'] as __main__ in {SCRIPTS / 'arguments.py'}"


def test_a_module_runs_as_with_python_m(tmp_path: Path) -> None:
    run = doctor(tmp_path, "tests.doctor.scripts.arguments", "--lines", "0", nproc=2)
    assert run.status == 0, run.told
    assert "as __main__" in run.out


def test_all_that_a_script_prints_arrives_on_its_own_stream_with_its_rank(tmp_path: Path) -> None:
    run = doctor(tmp_path, "arguments.py", "--lines", "20000", nproc=2, options=("--quiet",))
    printed = [line for line in run.out.splitlines() if " line " in line]
    complained = [line for line in run.told.splitlines() if " line " in line]
    wanted = {(rank, number) for rank in (0, 1) for number in range(20000)}
    split = [(int(line[1]), int(line.split()[2])) for line in (*printed, *complained)]
    assert set(split) == wanted
    assert len(split) == len(wanted)
    assert len(printed) == len(complained)


def test_the_status_of_a_script_that_fails_by_itself_is_its_own(tmp_path: Path) -> None:
    run = doctor(tmp_path, "own_status.py", nproc=2)
    assert (run.status, run.json["own_status"], run.json["findings"]) == (3, 3, [])


def test_quiet_says_nothing_of_a_healthy_script(tmp_path: Path) -> None:
    run = doctor(tmp_path, "healthy_ddp.py", nproc=2, options=("--quiet",))
    assert (run.status, run.told) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no script"),
        (("--nproc=2", "--", "missing.py"), "there is no script missing.py"),
        (("--nproc=2", "--", "-m", "no_such_module"), "there is no module no_such_module"),
        (("--nproc=0", "--", __file__), "1 to 64 ranks"),
        (("--nproc=2", "--json=/proc/none/report.json", "--", __file__), "cannot be written"),
        (("--launch=ranks", "--", __file__), "needs --nproc"),
        (("--", str(SCRIPTS / "healthy_ddp.py")), "--nproc 4 -- "),
        (("--nproc=2", "train.py", "--epochs"), "python -m fixtures.doctor --nproc 4 -- train.py --epochs"),
        (("--nproc=2", "--ranks=3", "--", __file__), "no option of the doctor's: --ranks=3"),
        (("--nproc=2", f"--trace={ROOT}/no/such/trace.json", "--", __file__), f"mkdir -p {ROOT}/no/such"),
    ],
)
def test_a_command_line_that_cannot_be_used_is_told_and_ends_with_2(arguments: tuple[str, ...], words: str) -> None:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, env=environment(), cwd=ROOT, check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (ROOT / "no").exists()


def test_the_time_limit_says_what_everybody_does(tmp_path: Path) -> None:
    run = doctor(tmp_path, "arguments.py", "--lines=0", "--endless", nproc=2, options=("--timeout=10",))
    assert (run.status, run.json["over"], run.first["kind"]) == (1, "timeout", "stall")
    assert "rank" in run.first["sentence"]


def _processes_with(marker: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                if marker.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("script", ["arguments.py", "spawned_endless.py"])
def test_ctrl_c_ends_everything(script: str, tmp_path: Path) -> None:
    marker = f"--words={tmp_path.name}-{script}"
    ranks = ("--nproc=2",) if script == "arguments.py" else ()
    arguments = ("--lines=1", "--endless", "--", marker) if script == "arguments.py" else (marker,)
    process = subprocess.Popen(
        command(*ranks, "--", str(SCRIPTS / script), *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment(), "TMPDIR": str(tmp_path)},
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert b"[" in process.stdout.readline()  # a rank prints: all is under way
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, told.decode()
    until(lambda: not _processes_with(marker), "the ranks end")
    assert not list(tmp_path.glob("doctor-*"))


def test_a_script_may_have_packages_named_like_ours(tmp_path: Path) -> None:
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "__init__.py").write_text("NAME = 'the fixtures of the script'\n")
    script = tmp_path / "train.py"
    script.write_text("import sys, fixtures\nprint(fixtures.NAME, [n for n in sys.modules if n.startswith('impls')])\n")
    run = doctor(tmp_path, str(script), nproc=1)
    assert (run.status, run.out) == (0, "[0] the fixtures of the script []\n"), run.told


def test_a_sitecustomize_of_the_environment_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.customized = 'by the environment'\n")
    script = tmp_path / "train.py"
    script.write_text("print(customized)\n")
    monkeypatch.setattr(
        "tests.doctor.running.environment", lambda: {**environment(), "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    )
    run = doctor(tmp_path, str(script), nproc=1)
    assert run.out == "[0] by the environment\n", run.told


def test_a_script_that_makes_no_group_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('nothing', end='')\n")
    run = doctor(tmp_path, str(script), nproc=2)
    assert run.status == 0
    assert run.json["notes"] == ["No process group was made: there was nothing to watch."]
    assert sorted(run.out.split("\n")) == ["", "[0] nothing", "[1] nothing"]


def test_an_error_that_every_rank_makes_is_told_once(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("def main():\n    return 1 / 0\n\n\nmain()\n")
    run = doctor(tmp_path, str(script), nproc=2)
    assert (run.status, len(run.json["findings"]), run.first["ranks"]) == (1, 1, [])
    assert run.first["sentence"].startswith("every rank raised ZeroDivisionError")
    assert run.first["where"].endswith("train.py:2")
