"""One hand-in in a pytest of its own: started, watched, ended with everything below it.

The process may take a time and a number of bytes. Past the bytes its largest rank is killed, which costs the hand-in
that check and no other; past the time the run is asked to stop, so that it still writes its report, and then killed.
Knows processes and folders, and nothing of points.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fixtures.world import kernel

ROOT = Path(__file__).resolve().parents[2]
STARTING_S = 120.0  # beyond the time limit: to start, to collect, to import the hand-in, to write the report
STOPPING_S = 30.0  # for a run that was asked to stop
PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider")
_HIDDEN = ("PYTEST", "LOCKSTEP", "TOX", "COV_")
_RANKS_BELOW = 3  # pytest, its server, a supervisor, and then the ranks


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one hand-in may take."""

    time_s: float
    memory_bytes: int | None = None


class GradedProcess:
    """A pytest that examines one hand-in; its temporary files and its report lie in ``folder``, which is private."""

    def __init__(self, options: Sequence[str], folder: Path, limits: Limits) -> None:
        folder.mkdir(mode=0o700)
        self.folder = folder
        self.report = folder / "report"
        self.log = folder / "log.txt"
        self.num_killed = 0  # ranks, for memory
        self.was_stopped = False
        self._limits = limits
        self._began = time.monotonic()
        self._stopping_since: float | None = None
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_HIDDEN)}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*PYTEST, *options, f"--report={self.report}"],
                cwd=ROOT,
                env={**kept, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "120"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=functools.partial(kernel.die_with_parent, os.getpid()),  # this process has one thread
            )

    @property
    def pid(self) -> int:
        """Of pytest."""
        return self._process.pid

    @property
    def took_s(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    def watch(self) -> int | None:
        """Look once: the exit status of a run that has ended, else None. Enforces the limits."""
        if (status := self._process.poll()) is not None:
            return status
        self._watch_memory()
        if self._stopping_since is not None and time.monotonic() - self._stopping_since > STOPPING_S:
            self.kill()
        elif self._stopping_since is None and self.took_s > self._limits.time_s + STARTING_S:
            self._stopping_since = time.monotonic()
            self.was_stopped = True
            kernel.kill(self.pid, signal.SIGINT)
        return None

    def kill(self) -> None:
        """End pytest at once; its server notices, and ends the rest."""
        self._process.kill()
        self._process.wait()

    def remove(self) -> None:
        """Remove its temporary files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _watch_memory(self) -> None:
        if self._limits.memory_bytes is None:
            return
        below = kernel.descendants(self.pid)
        if sum(map(kernel.unbacked_bytes, below)) <= self._limits.memory_bytes:  # cheap, and never less than the truth
            return
        used = {pid: kernel.own_bytes(pid) for pid in below}
        ranks = [pid for pid, depth in below.items() if depth >= _RANKS_BELOW]
        if sum(used.values()) > self._limits.memory_bytes and ranks:
            self.num_killed += 1
            kernel.kill(max(ranks, key=lambda pid: used[pid]))


class Orphans:
    """Processes whose pytest was killed: they clear away behind themselves, and are killed where they do not."""

    GRACE_S = 20.0

    def __init__(self) -> None:
        kernel.adopt_orphans()
        self._since: dict[int, float] = {}

    def look(self, running: Sequence[int]) -> bool:
        """Reap those that have ended, kill those that stay too long; whether there are any left."""
        now = time.monotonic()
        found = [pid for pid in kernel.children(os.getpid()) if pid not in running]
        self._since = {pid: self._since.get(pid, now) for pid in found}
        for pid, since in self._since.items():
            if now - since > self.GRACE_S:
                kernel.kill_group(pid)
                kernel.kill(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return bool(found)
