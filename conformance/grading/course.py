"""A whole course, several hand-ins at a time.

Each hand-in is copied and graded in a process tree of its own, within a time and a memory limit. One that breaks,
hangs or kills its pytest costs only itself. A run that was interrupted, even by ``kill -9``, is resumed by the same
command. Nothing that a hand-in writes is taken for a result: a report counts when pytest itself ended well, gave its
digest over a pipe, and it names this rubric and this copy, which is still what was copied; and once more before all of
them go into one matrix.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.grading import hand_ins
from conformance.grading.book import GradeBook, Graded, fingerprint, sha256_of
from conformance.grading.hand_ins import Copied, HandIn
from conformance.grading.matrix import merge, say
from conformance.grading.process import GradedProcess, Launcher, Limits, Orphans
from conformance.grading.time_limit import NO_MORE, USED_UP
from conformance.verdict import points_told

TICK_S = 0.2  # between two looks at the processes
DONE, NOT_FINAL, INTERRUPTED, USAGE = 0, 1, 2, 4
_ENDED_WELL = (0, 1, 2)  # statuses of a pytest that wrote its report
_KEPT = ("report.html", "junit.xml", "report.md", "badge.svg", "traces", "reproduce")  # beside report.json
_OURS = frozenset({"suite-error", "lost"})
HAND_INS = "hand-ins"  # the folder of all that is one hand-in's: its name is not ours to choose
_LAST = 3  # the attempt that examines nothing: its report says that there is no answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """All that is the same for every hand-in."""

    folder: Path
    out: Path
    rubric_path: Path
    rubric_sha256: str
    suite: str
    seed: int
    jobs: int
    limits: Limits
    handed_on: tuple[str, ...] = ()  # options that every pytest gets: how the hand-ins are to be taken
    adapters_sha256: str = ""


@dataclass(slots=True, kw_only=True)
class _Running:
    hand_in: HandIn
    copied: Copied
    process: GradedProcess
    attempt: int
    remarks: list[str]
    trouble: str = ""  # why its report does not count, where pytest ended well
    was_disturbed: bool = False  # by somebody else, in an earlier attempt
    sha256: str = ""  # of its report, as pytest gave it


class Grading:
    """The loop: start what is due, look at what runs, take what has ended."""

    def __init__(self, course: Course, found: Sequence[HandIn], others: Mapping[str, str]) -> None:
        self._course = course
        self._hand_ins = found
        self._others = others  # names of what is no hand-in, with the reason: each has its row all the same
        self._book = GradeBook(course.out)
        self._orphans = Orphans()
        self._running: list[_Running] = []
        self._temporary = _private_folder(course.out)
        self._launcher = Launcher([f"--rubric={course.rubric_path}"], self._temporary)
        self._num_started = 0
        self._done: dict[str, Graded] = {}

    def run(self) -> int:
        """Grade all that is not graded yet, then put everything together."""
        try:
            for _ in range(2):  # a report that was changed behind our back is made anew, once
                self._grade([hand_in for hand_in in self._hand_ins if not self._stands(hand_in)])
            return self._finish()
        finally:
            self._end()

    def _grade(self, due: Sequence[HandIn]) -> None:
        waiting = list(reversed(due))
        while waiting or self._running:
            while waiting and len(self._running) < self._course.jobs:
                self._begin(waiting.pop())
            for running in list(self._running):
                if (status := running.process.watch()) is not None:
                    self._running.remove(running)
                    self._take(running, status)
            self._orphans.look([*self._launcher.pids, *(running.process.pid for running in self._running)])
            time.sleep(TICK_S)

    def _begin(self, hand_in: HandIn) -> None:
        place, copied = self._place(hand_in), self._copied(hand_in)
        known = self._book.known(hand_in.name, self._fingerprint(copied), place / "report.json")
        if known is not None:
            self._note(known, is_new=False)
            return
        (place / "report.json").unlink(missing_ok=True)
        self._start(
            hand_in,
            copied,
            attempt=1 if copied.sha256 else _LAST,
            remarks=[*copied.left_out, *hand_ins.borrowed(copied)],
        )

    def _start(
        self, hand_in: HandIn, copied: Copied, attempt: int, remarks: list[str], *, disturbed: bool = False
    ) -> None:
        course = self._course
        limit_s = course.limits.time_s if attempt < _LAST else 0.0
        where = f"{copied.path}{os.sep if copied.path.is_dir() else ''}"  # a name may end with a space
        options = [f"--impl={where}", f"--rubric={course.rubric_path}", f"--hypothesis-seed={course.seed}"]
        options += [f"--time-limit={limit_s:g}"] if math.isfinite(limit_s) else []
        options += course.handed_on
        self._num_started += 1
        process = GradedProcess(options, self._temporary / str(self._num_started), course.limits, self._launcher)
        self._running.append(
            _Running(
                hand_in=hand_in,
                copied=copied,
                process=process,
                attempt=attempt,
                remarks=remarks,
                was_disturbed=disturbed,
            )
        )

    def _take(self, running: _Running, status: int) -> None:
        process, hand_in = running.process, running.hand_in
        if process.num_killed:
            running.remarks.append(f"{process.num_killed} ranks were killed: together above the memory limit")
        if process.was_stopped:
            running.remarks.append("the run was stopped: past its time limit and not coming back")
        report = self._report_of(running, status)
        again = running.attempt < _LAST if report is None else running.attempt == 1 and _is_our_fault(report)
        if again:
            why = running.trouble or f"ended with status {status}"
            running.remarks.append(f"attempt {running.attempt}: {why}; tried again")
            process.remove()
            disturbed = running.was_disturbed or bool(running.trouble)
            self._start(hand_in, self._copied(hand_in), running.attempt + 1, running.remarks, disturbed=disturbed)
            return
        graded = self._keep(running, report)
        process.remove()
        self._book.note(graded)
        self._note(graded, is_new=True)

    def _report_of(self, running: _Running, status: int) -> dict[str, Any] | None:
        """The report, if it is what pytest itself wrote, about this copy as it was copied and this rubric."""
        receipt = running.process.receipt()
        if status not in _ENDED_WELL:
            return None
        try:
            content = (running.process.report / "report.json").read_bytes()
            running.sha256 = hashlib.sha256(content).hexdigest()
            if running.sha256 != receipt:
                running.trouble = "report.json is not what pytest wrote: somebody else did"
                return None
            if not running.copied.is_intact:
                running.trouble = "its files were changed while it was examined"
                return None
            report = json.loads(content)
            (impl,) = report["impls"]
            is_ours = report["rubric"]["sha256"] == self._course.rubric_sha256
            is_of_this = impl["path"] == str(running.copied.path) and report["run"]["exit_status"] == status
            return dict(report) if is_ours and is_of_this and impl["name"] in report["score"] else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _keep(self, running: _Running, report: dict[str, Any] | None) -> Graded:
        """Move the report to its place; without any, all points of the rubric stay open."""
        place, made = self._place(running.hand_in), running.process.report
        is_lasting = running.attempt < _LAST or not running.was_disturbed  # else it is tried anew by the same command
        for name in (*_KEPT, "report.json"):
            _move(made / name, place / name)
        _move(running.process.log, place / "log.txt")
        score: dict[str, Any] = {"points": 0.0, "out_of": 0.0, "open": 0.0}
        remarks = list(running.remarks)
        if report is None:
            (place / "report.json").unlink(missing_ok=True)
            remarks.append(running.trouble or "there is no report: see log.txt")
        else:
            (score,) = report["score"].values()
            (impl,) = report["impls"]
            if error := impl["error"].replace(f"{place / 'hand-in'}{os.sep}", ""):
                what = "" if impl.get("blocks") else "nothing could be examined: "
                remarks.append(f"{what}{' '.join(error.split())}")
            remarks += _without_end(report)
        return Graded(
            name=running.hand_in.name,
            fingerprint=self._fingerprint(running.copied) if is_lasting else "",
            report_sha256="" if report is None else running.sha256,
            points=score["points"],
            out_of=score["out_of"],
            open=score["open"],
            took_s=round(running.process.took_s, 1),
            remarks=tuple(remarks),
        )

    def _stands(self, hand_in: HandIn) -> bool:
        """Whether this run has its grade, and its report is still what it was."""
        graded = self._done.get(hand_in.name)
        report = self._place(hand_in) / "report.json"
        return graded is not None and graded.report_sha256 == sha256_of(report)

    def _note(self, graded: Graded, *, is_new: bool) -> None:
        again = graded.name in self._done
        self._done[graded.name] = graded
        width = len(str(len(self._hand_ins)))
        told = f"{points_told(graded.points)} of {points_told(graded.out_of)} points"
        told += f", not final: {points_told(graded.open)} are open" if graded.open or not graded.out_of else ""
        repeated = ", again" if again else ""
        how = f"{graded.took_s:.0f} s{repeated}" if is_new else "as graded before"
        say(f"{len(self._done):>{width}}/{len(self._hand_ins)}  {graded.name}: {told} ({how})")
        for remark in graded.remarks:
            say(f"{'':>{2 * width + 1}}  {remark}")

    def _finish(self) -> int:
        names = [hand_in.name for hand_in in self._hand_ins]
        reports = [self._place(each) / "report.json" for each in self._hand_ins if self._done[each.name].report_sha256]
        others = {name: [why] for name, why in self._others.items()}
        remarks = {name: [*self._done[name].remarks] for name in names} | others
        say("")
        status = merge(reports, remarks, self._course.out, self._temporary)
        loose = [name for name in names if self._done[name].open or not self._done[name].out_of]
        loose += [hand_in.name for hand_in in self._hand_ins if not self._stands(hand_in)]
        if loose:
            say(f"not final: {', '.join(dict.fromkeys(loose))}")
        return DONE if not loose and status == 0 else NOT_FINAL

    def _end(self) -> None:
        """Leave no process and no temporary file behind."""
        for running in self._running:
            running.process.kill()
        self._launcher.close()
        limit = time.monotonic() + 2 * Orphans.GRACE_S
        while self._orphans.look([]) and time.monotonic() < limit:
            time.sleep(TICK_S)
        shutil.rmtree(self._temporary, ignore_errors=True)

    def _copied(self, hand_in: HandIn) -> Copied:
        """Made anew each time: what was examined can write."""
        into = self._place(hand_in) / "hand-in"
        try:
            return hand_ins.copy(hand_in, into)
        except OSError as error:
            return hand_ins.nothing(into, error)

    def _place(self, hand_in: HandIn) -> Path:
        return self._course.out / HAND_INS / hand_in.name

    def _fingerprint(self, copied: Copied) -> str:
        """Empty for what could not be copied: perhaps it can the next time."""
        if not copied.sha256:
            return ""
        course = self._course
        taken = [*course.handed_on, course.adapters_sha256]
        return fingerprint([copied.sha256, course.rubric_sha256, course.suite, course.seed, course.limits, *taken])


def _is_our_fault(report: dict[str, Any]) -> bool:
    """Whether anything has no answer for another reason than that the hand-in had no time left."""
    return any(result["verdict"] in _OURS and USED_UP not in result["message"] for result in report["results"])


def _without_end(report: dict[str, Any]) -> list[str]:
    """A sentence for each function that used its part of the time limit up, and what to make of its open points."""
    lost = [result["message"] for result in report["results"] if result["verdict"] == "lost"]
    last = {message.partition(" did not")[0]: message for message in lost if NO_MORE in message}
    return [f"{message}; what is open of it is worth nothing if it never ends" for message in last.values()]


def _move(made: Path, place: Path) -> None:
    """Put a file or folder in the place of an earlier one, or of none; what was not made leaves none behind."""
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    if made.exists() and not made.is_symlink():
        shutil.move(made, place)


def _private_folder(out: Path) -> Path:
    """For temporary files; the same one for the same ``out``, so that what a killed run left goes with the next."""
    folder = Path(tempfile.gettempdir()) / f"lockstep-grade-{hashlib.sha256(os.fsencode(out)).hexdigest()[:12]}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
