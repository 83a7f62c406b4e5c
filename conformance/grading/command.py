"""``python -m conformance grade FOLDER --rubric=FILE``: its options, what it refuses, and one run at a time."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from conformance.grading import hand_ins, rubric
from conformance.grading.book import sha256_of, suite_version
from conformance.grading.course import INTERRUPTED, USAGE, Course, Grading
from conformance.grading.matrix import say
from conformance.grading.process import Limits
from conformance.ledger import Ledger, LedgerError
from impls import table
from lessons.quantities import num_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="each file and folder in it is a hand-in")
    parser.add_argument("--rubric", type=Path, required=True, metavar="FILE", help="weights, see docs/grading.md")
    parser.add_argument("--out", type=Path, default=Path("grades"), metavar="FOLDER", help="results (default: grades)")
    parser.add_argument("--jobs", type=_jobs, default=max(1, (os.cpu_count() or 1) // 2), metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of drawn cases (default: 0)")
    parser.add_argument("--time-limit", type=float, default=600.0, metavar="SECONDS", help="of each (default: 600)")
    parser.add_argument("--memory-limit", type=num_bytes, metavar="BYTES", help="of each, such as 6GiB (default: none)")
    parser.add_argument("--adapters", type=Path, metavar="FILE", help="a table of adapters as TOML, for all of them")
    parser.add_argument("--device-shim", action="store_true", help="move their requests for cuda to the CPU")


def main(chosen: argparse.Namespace) -> int:
    """Grade; the exit status says whether every grade is final."""
    try:
        course = _course(chosen)
        found, others = hand_ins.find(course.folder)
    except (LedgerError, rubric.RubricError, table.BadTable) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}")
    found = [hand_in for hand_in in found if hand_in.path.resolve() != course.out]
    if not found:
        return _refuse(f"{course.folder} has no hand-in: a hand-in is a .py file or a folder in it")
    ours = {course.rubric_path, *([_resolved(chosen.adapters)] if chosen.adapters else [])}
    others = {name: why for name, why in others.items() if course.folder / name not in ours}
    for name, why in others.items():
        say(f"{name}: {why}")
    try:
        with _alone(course.out), _interruptible():
            return Grading(course, found, others).run()
    except BlockingIOError:
        return _refuse(f"another run is grading into {course.out}")
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        return INTERRUPTED


def _course(chosen: argparse.Namespace) -> Course:
    folder, out, rubric_path = map(_resolved, (chosen.folder, chosen.out, chosen.rubric))
    if not folder.is_dir():
        raise NotADirectoryError(20, "is no folder", str(folder))
    read = rubric.read(rubric_path, Ledger.load())
    adapters = _resolved(chosen.adapters) if chosen.adapters else None
    if adapters:
        table.read_file(str(adapters))  # a slip is told before anything runs
    handed_on = [f"--adapters={adapters}"] if adapters else []
    out.mkdir(parents=True, exist_ok=True)
    return Course(
        folder=folder,
        out=out,
        rubric_path=rubric_path,
        rubric_sha256=read.sha256,
        suite=suite_version(),
        seed=chosen.seed,
        jobs=chosen.jobs,
        limits=Limits(time_s=chosen.time_limit, memory_bytes=chosen.memory_limit),
        handed_on=(*handed_on, *(["--device-shim"] if chosen.device_shim else [])),
        adapters_sha256=sha256_of(adapters) if adapters else "",
    )


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    """One run at a time writes into ``out``; the lock goes with the process that holds it."""
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Being asked to end is the same as Ctrl-C."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before: dict[int, Any] = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _resolved(path: Path) -> Path:
    """Without links; one in a circle stays as it is, and cannot be read."""
    return Path(os.path.realpath(path))


def _jobs(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least one at a time")
    return number


def _refuse(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return USAGE
