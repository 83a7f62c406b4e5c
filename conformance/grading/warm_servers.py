"""Fork servers for many runs, each forked from one process that has torch loaded already.

A run starts its own server otherwise, and half of what a quick hand-in costs is this import. The process that is forked
runs no code of any hand-in, so that every server begins as a new one does. It ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NoReturn

from fixtures.world import kernel
from fixtures.world.server import ADDRESS_VARIABLE, GOODBYE, SINGLE_THREADED

ROOT = Path(__file__).resolve().parents[2]
ENDING_S = 20.0  # for a server to clear its worlds away, and for the process that is forked to see all of them end
_ANSWERING_S = 60.0  # the first answer waits for the import of torch
_MOST_CHARS = 90  # of a folder with a socket in it: a path of one has room for 103 on macOS, 107 on Linux
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from conformance.grading.warm_servers import main; main()"


class WarmServer:
    """One server as the run sees that it is for; its folder lies in that of the run."""

    def __init__(self, pid: int, lifeline: socket.socket, folder: Path) -> None:
        self.pid = pid
        self._lifeline = lifeline
        self._folder = folder

    @property
    def environment(self) -> dict[str, str]:
        """What a run has to find in its environment to ask this server for worlds."""
        return {ADDRESS_VARIABLE: str(self._folder / "server")}

    def close(self) -> None:
        """End it with all its worlds, and wait until it is gone."""
        with contextlib.suppress(OSError):
            self._lifeline.send(GOODBYE)
        self._lifeline.settimeout(ENDING_S)
        try:
            self._lifeline.recv(1)  # nothing comes: its end of the line closes when it ends
        except TimeoutError:
            kernel.kill(self.pid)
        except OSError:
            pass
        self._lifeline.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class WarmServers:
    """Starts them; None instead of one where that cannot be done, and the run starts its own as ever."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder  # for what torch writes while it is imported
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """Of the process that is forked, once there is one."""
        return None if self._process is None else self._process.pid

    def start(self, folder: Path) -> WarmServer | None:
        """A server of its own for a run whose temporary files lie in ``folder``."""
        home = Path(tempfile.mkdtemp(prefix="lockstep-", dir=folder))
        if len(str(home)) > _MOST_CHARS:
            home.rmdir()
            return None
        if self._line is None:
            self._line = self._launch()
        ours, theirs = socket.socketpair()
        with socket.socket(socket.AF_UNIX) as listening, theirs:
            listening.bind(str(home / "server"))
            listening.listen(128)
            try:
                socket.send_fds(self._line, [os.fsencode(home)], [listening.fileno(), theirs.fileno()])
                answer = self._line.recv(32)
            except OSError:
                answer = b""
        if answer.isdigit():
            return WarmServer(int(answer), ours, home)
        ours.close()
        shutil.rmtree(home, ignore_errors=True)
        self.close()  # the next run may find a new one
        return None

    def close(self) -> None:
        """End the process that is forked, once all servers of it have ended."""
        if self._process is None or self._line is None:
            return
        self._line.close()
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process, self._line = None, None

    def _launch(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_ANSWERING_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(ROOT)],
                cwd=ROOT,
                env={**os.environ, **SINGLE_THREADED, "TMPDIR": str(self._folder)},
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return ours


def main() -> NoReturn:
    """The process that is forked: a message on standard input is a folder and the two ends of a server in it."""
    from fixtures.world import serve

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    environment = dict(os.environ)  # torch adds a folder of its own to it
    serve._preload()
    asking = socket.socket(fileno=os.dup(0))
    while True:
        try:
            folder, given, _, _ = socket.recv_fds(asking, 4096, 2)
        except ConnectionError:
            folder = b""
        if not folder:  # whoever asks is gone
            break
        pid = os.fork()
        if pid == 0:
            asking.close()
            _serve(environment, os.fsdecode(folder), *given)
        for descriptor in given:
            os.close(descriptor)
        asking.send(str(pid).encode())
        _reap(os.WNOHANG)
    _reap(0)
    os._exit(0)


def _serve(environment: dict[str, str], folder: str, listening: int, lifeline: int) -> NoReturn:
    """What ``Server.start`` does before it executes Python, and then the server itself."""
    try:
        from fixtures.world import serve

        os.setsid()
        sys.argv = ["-c"]
        os.environ.clear()
        os.environ.update(environment | {"TMPDIR": folder})
        tempfile.tempdir = None
        log = os.open(Path(folder) / "log", os.O_WRONLY | os.O_CREAT, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in enumerate((null, log, log)):
            os.dup2(descriptor, number)
        os.close(log)
        os.close(null)
        serve.main(listening, lifeline, folder, ())
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _reap(how: int) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, how)[0]:
            pass
