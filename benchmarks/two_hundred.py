"""``python -m benchmarks.two_hundred FOLDER``: a class of two hundred is graded for real, interrupted twice, resumed.

Then it is looked whether every hand-in has one row, whether the right ones have all points and the wrong ones have not,
whether a sample gets the same points alone, and what is left in the process table, in /dev/shm and among the temporary
files. It takes the better part of an hour on two cores.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.hand_in_programs import HandIn, class_of, write

ROOT = Path(__file__).resolve().parents[1]
SHARED_MEMORY = Path("/dev/shm")
RUBRIC = """
name = "Assignment 2: data parallelism"
assigned = ["DataParallel", "ring_allreduce"]
[[weight]]
claims = ["loop.construct-broadcast", "collectives.values.allreduce"]
core = 2
[[weight]]
claims = ["loop.mean"]
core = 5
[[weight]]
claims = ["collectives.ring.*"]
core = 1
"""
LEAST = {"loops in the ring.py": 7.0}  # what its right function earns: the other one eats no time of it
INTERRUPTED = 2
GONE_S = 60.0  # for what a killed grader leaves to end by itself


class Trial:
    """A class and the command that grades it, in a folder of its own."""

    def __init__(self, folder: Path, number: int, options: Sequence[str]) -> None:
        self.folder = folder
        self.out = folder / "grades"
        self.temporary = folder / "tmp"
        self.hand_ins = class_of(number)
        self.most_bytes = 0  # of the grader itself
        self._options = options
        self._shared = set(SHARED_MEMORY.iterdir()) if SHARED_MEMORY.exists() else set()

    def prepare(self) -> None:
        """Write the class, once: a second call of the program goes on with it."""
        if not (self.folder / "hand-ins").exists():
            write(self.hand_ins, self.folder / "hand-ins")
            (self.folder / "rubric.toml").write_text(RUBRIC, encoding="utf-8")
        self.temporary.mkdir(exist_ok=True)

    def grade(self, *, until: int | None = None, number: signal.Signals = signal.SIGINT) -> int:
        """Run the command to its end, or send it the signal once so many hand-ins are graded; its exit status."""
        command = [sys.executable, "-m", "conformance", "grade", str(self.folder / "hand-ins"), f"--out={self.out}"]
        command += [f"--rubric={self.folder / 'rubric.toml'}", *self._options]
        environment = {**os.environ, "TMPDIR": str(self.temporary)}
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            num_new = 0
            for line in process.stdout:
                print(line, end="", flush=True)
                self._weigh(process.pid)
                num_new += " points" in line and " s)" in line
                if until is not None and num_new >= until:
                    process.send_signal(number)
                    until = None
        return process.returncode

    def _weigh(self, pid: int) -> None:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8") if Path(f"/proc/{pid}").exists() else ""
        found = [int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("RssAnon:")]
        self.most_bytes = max([self.most_bytes, *found])

    def troubles(self) -> Iterator[str]:
        """All that is not as it should be."""
        with (self.out / "grades.csv").open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
        names = [_printable(row["hand_in"].removeprefix("'")) for row in rows]
        shown = {_printable(hand_in.name): hand_in for hand_in in self.hand_ins}
        yield from (f"{name!r} has {names.count(name)} rows" for name in shown if names.count(name) != 1)
        yield from (f"a row for {name!r}, which nobody handed in" for name in names if name not in shown)
        for name, row in zip(names, rows, strict=True):
            yield from _unfair(shown[name], row) if name in shown else ()
        yield from (f"left in /dev/shm: {path}" for path in set(SHARED_MEMORY.iterdir()) - self._shared)
        yield from self.leftovers()

    def leftovers(self) -> Iterator[str]:
        """Temporary files, and processes whose temporary files are or were here."""
        yield from (f"left: {path}" for path in self.temporary.iterdir())
        limit = time.monotonic() + GONE_S
        while (found := self._processes()) and time.monotonic() < limit:
            time.sleep(0.5)
        yield from (f"still runs: {text}" for text in found)

    def _processes(self) -> list[str]:
        mark = f"TMPDIR={self.temporary}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                try:
                    if mark in (entry / "environ").read_bytes():
                        found.append(f"{entry.name} {(entry / 'cmdline').read_bytes()[:100]!r}")
                except OSError:
                    continue
        return found

    def alone(self, hand_in: HandIn) -> tuple[float, float]:
        """Points and open points of one hand-in in a pytest of its own, as a student would run it."""
        report = self.folder / "alone"
        shutil.rmtree(report, ignore_errors=True)
        path = self.out / "hand-ins" / hand_in.name / "hand-in" / hand_in.name
        options = [f"--impl={path}{os.sep if path.is_dir() else ''}", f"--rubric={self.folder / 'rubric.toml'}"]
        limit = [option for option in self._options if option.startswith("--time-limit")]
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"--report={report}"]
        subprocess.run([*command, *options, *limit], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        return _points(report / "report.json")

    def differs(self, hand_in: HandIn) -> Iterator[str]:
        """What the class and the hand-in by itself do not agree on."""
        in_class = _points(self.out / "hand-ins" / hand_in.name / "report.json")
        if (alone := self.alone(hand_in)) != in_class:
            yield f"{hand_in.name}: {in_class} in the class, {alone} alone"


def _points(path: Path) -> tuple[float, float]:
    (score,) = json.loads(path.read_text(encoding="utf-8"))["score"].values()
    return score["points"], score["open"]


def _printable(name: str) -> str:
    """What every way of showing a name keeps of it."""
    return "".join(char for char in name if char.isprintable() and not char.isspace() and char not in "�⏎")


def _unfair(hand_in: HandIn, row: dict[str, str]) -> Iterator[str]:
    points, out_of, still_open = (float(row[name] or 0) for name in ("points", "out_of", "open"))
    told = f"{hand_in.name!r} ({hand_in.about}): {points:g} of {out_of:g}, {still_open:g} open"
    if hand_in.kind == "right" and points != out_of:
        yield f"a right one without all points: {told}"
    if points < LEAST.get(hand_in.name, 0.0):
        yield f"a right function without its points: {told}"
    if hand_in.kind == "wrong" and (points >= out_of or still_open):
        yield f"a fault that costs nothing, or has no answer: {told}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trial; 0 when nothing is as it should not be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.two_hundred", description=__doc__)
    parser.add_argument("folder", type=Path, help="a new folder, or the one of an earlier trial that is to go on")
    parser.add_argument("--hand-ins", type=int, default=200, metavar="N")
    parser.add_argument("--sample", type=int, default=10, metavar="N", help="so many are graded alone as well")
    options, others = parser.parse_known_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a script it is ignored
    options.folder.mkdir(parents=True, exist_ok=True)
    trial = Trial(options.folder.resolve(), options.hand_ins, others)
    trial.prepare()
    part = options.hand_ins // 5
    troubles = []
    if trial.grade(until=part) != INTERRUPTED:
        troubles.append("Ctrl-C did not end the run as it should")
    troubles += [f"after Ctrl-C: {trouble}" for trouble in trial.leftovers()]
    if trial.grade(until=part, number=signal.SIGKILL) != -signal.SIGKILL:
        troubles.append("the grader was not killed")
    trial.grade()
    troubles += trial.troubles()
    for hand_in in random.Random(0).sample(trial.hand_ins, options.sample):
        troubles += trial.differs(hand_in)
    print(*troubles, f"{len(troubles)} troubles; the grader itself took {trial.most_bytes / 2**20:.0f} MiB", sep="\n")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
