"""A pytest that has loaded and collected everything before there is a hand-in, and is forked for each.

Loading torch, rewriting the checks and reading the ledger take several times as long as the checks of a quick hand-in,
and are the same for all. The process that is forked examines nothing itself and never meets a hand-in.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from fixtures.world import kernel

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("-q", "-n", "0", "-p", "no:cacheprovider")
_CANNOT = 70  # the status of a fork that could not even begin: no report counts then


class Forked:
    """One run, as ``subprocess.Popen`` shows its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, or minus the signal that ended it; None while it runs."""
        return self._look(os.WNOHANG)

    def wait(self) -> int | None:
        """The same, when it has ended."""
        return self._look(0)

    def kill(self) -> None:
        """End it at once."""
        if self.returncode is None:
            kernel.kill(self.pid)

    def _look(self, how: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, how)
            except ChildProcessError:
                pid, status = self.pid, 0
                self.returncode = _CANNOT
            if pid and self.returncode is None:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def load(options: Sequence[str], folder: Path) -> bool:
    """Collect once in this process; whether forks of it can be relied on. What is printed goes into ``folder``.

    Raises KeyboardInterrupt where pytest was interrupted.
    """
    if sys.platform != "linux":
        return False  # elsewhere a fork of a process with frameworks loaded may not run Python
    import pytest

    where, path, environment = Path.cwd(), list(sys.path), dict(os.environ)
    kept = [os.dup(1), os.dup(2)]
    sys.stdout.flush()
    sys.stderr.flush()
    log = os.open(folder / "collection.txt", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    try:
        os.chdir(ROOT)
        os.environ["TMPDIR"] = str(folder)  # torch makes folders while it is imported
        tempfile.tempdir = None
        sys.path[:] = [str(ROOT), *[entry for entry in path if entry not in ("", str(where))]]
        status = pytest.main([*OPTIONS, "--collect-only", f"--report={folder / 'report'}", *options])
        sys.stdout.flush()
    finally:
        sys.path[:] = path
        os.chdir(where)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
        for number, descriptor in enumerate(kept, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)
    if status == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    gc.collect()
    gc.freeze()  # what is never looked at again stays shared with every fork
    return status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and _num_threads() == 1


def fork(options: Sequence[str], log: Path, environment: Mapping[str, str], kept: int) -> Forked:
    """Run pytest with these options in a fork: a session of its own, that ends when this process does.

    Of the descriptors that are open here it keeps ``kept`` alone.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _run(options, log, environment, parent, kept)
    return Forked(pid)


def _run(options: Sequence[str], log: Path, environment: Mapping[str, str], parent: int, kept: int) -> NoReturn:
    status = _CANNOT
    try:
        os.setsid()
        kernel.die_with_parent(parent)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        null = os.open(os.devnull, os.O_RDONLY)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for standard, descriptor in enumerate((null, output, output)):
            os.dup2(descriptor, standard)
        os.closerange(3, kept)  # the lock of the course, and the lines of other runs
        os.closerange(max(kept, 2) + 1, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # is that of this environment
        os.chdir(ROOT)
        sys.path[:] = [str(ROOT), *[entry for entry in sys.path if entry not in ("", str(ROOT))]]
        sys.argv = ["pytest", *options]
        sys.dont_write_bytecode = True
        import pytest

        status = int(pytest.main([*OPTIONS, *options]))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _num_threads() -> int:
    """Of this process, those of native libraries as well: a fork has one."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 0
