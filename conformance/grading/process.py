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
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from conformance.grading.warm_pytest import OPTIONS, ROOT, Forked, fork, load
from conformance.grading.warm_servers import WarmServer, WarmServers
from fixtures.world import kernel

STARTING_S = 120.0  # beyond the time limit: to start, to collect, to import the hand-in, to write the report
STOPPING_S = 30.0  # for a run that was asked to stop
PYTEST = (sys.executable, "-m", "pytest", *OPTIONS)
_HIDDEN = ("PYTEST", "LOCKSTEP", "TOX", "COV_")
RECEIPT = "LOCKSTEP_RECEIPT"  # as reports.receipt has it
_RANKS_BELOW = 2  # a server, a supervisor, and then the ranks


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one hand-in may take."""

    time_s: float
    memory_bytes: int | None = None


class Launcher:
    """How runs are started: forked from what is loaded already, or by executing Python where that cannot be done."""

    def __init__(self, options: Sequence[str], folder: Path) -> None:
        self._options = options  # of every run, as far as they decide what is loaded
        self._folder = folder
        self._servers = WarmServers(folder)
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith(_HIDDEN)}
        self._is_warm: bool | None = None  # not known before the first run: one that finds nothing to do loads nothing

    def start(
        self, options: Sequence[str], folder: Path, log: Path, receipt: int
    ) -> tuple[subprocess.Popen[bytes] | Forked, WarmServer | None]:
        """Start a pytest, whose temporary files go into ``folder``, and the server of its ranks.

        The digest of its report goes to the descriptor ``receipt``.
        """
        if self._is_warm is None:
            self._is_warm = load(self._options, self._folder)
        server = self._servers.start(folder) if self._is_warm else None
        environment = self._environment | {"TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "120"}
        environment |= server.environment if server is not None else {}
        environment |= {RECEIPT: str(receipt)}
        start = fork if self._is_warm else _execute
        process = start(options, log, environment, receipt)
        return process, server

    @property
    def pids(self) -> list[int]:
        """Of what is kept for the runs to come."""
        return [] if self._servers.pid is None else [self._servers.pid]

    def close(self) -> None:
        """End what was kept."""
        self._servers.close()


def _execute(options: Sequence[str], log: Path, environment: Mapping[str, str], kept: int) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [*PYTEST, *options],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[kept],
            preexec_fn=functools.partial(kernel.die_with_parent, os.getpid()),  # this process has one thread
        )


class GradedProcess:
    """A pytest that examines one hand-in; its temporary files and its report lie in ``folder``, which is private."""

    def __init__(self, options: Sequence[str], folder: Path, limits: Limits, launcher: Launcher) -> None:
        folder.mkdir(mode=0o700)
        self.folder = folder
        self.report = folder / "report"
        self.log = folder / "log.txt"
        self.num_killed = 0  # ranks, for memory
        self.was_stopped = False
        self._limits = limits
        self._began = time.monotonic()
        self._stopping_since: float | None = None
        self._receipt, theirs = os.pipe()
        try:
            options = [*options, f"--report={self.report}"]
            self._process, self._server = launcher.start(options, folder, self.log, theirs)
        finally:
            os.close(theirs)

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
            self._close_server()
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
        """End pytest at once; its server ends the rest."""
        self._process.kill()
        self._process.wait()
        self._close_server()

    def receipt(self) -> str:
        """What pytest itself said of its report when it wrote it: the SHA-256; empty where it wrote none. Once."""
        os.set_blocking(self._receipt, False)
        try:
            return os.read(self._receipt, 1 << 10).decode("ascii", "replace")
        except BlockingIOError:  # something below it keeps the pipe open
            return ""

    def remove(self) -> None:
        """Remove its temporary files."""
        os.close(self._receipt)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _close_server(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _watch_memory(self) -> None:
        if self._limits.memory_bytes is None:
            return
        below = kernel.descendants(self.pid)
        if self._server is None:
            ranks_below = _RANKS_BELOW + 1  # the server is pytest's own
        else:
            below |= kernel.descendants(self._server.pid)
            ranks_below = _RANKS_BELOW
        if sum(map(kernel.unbacked_bytes, below)) <= self._limits.memory_bytes:  # cheap, and never less than the truth
            return
        used = {pid: kernel.own_bytes(pid) for pid in below}
        ranks = [pid for pid, depth in below.items() if depth >= ranks_below]
        if sum(used.values()) > self._limits.memory_bytes and ranks:
            self.num_killed += 1
            kernel.kill(max(ranks, key=lambda pid: used[pid]))


class Orphans:
    """Processes whose pytest was killed: they clear away behind themselves, and are killed where they do not."""

    GRACE_S = 20.0

    def __init__(self) -> None:
        kernel.adopt_orphans()
        self._since: dict[int, float] = {}

    def look(self, running: Collection[int]) -> bool:
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
