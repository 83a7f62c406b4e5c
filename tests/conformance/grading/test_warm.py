"""What is loaded once and forked for each hand-in: a run sees nothing of the process that it was forked from."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.grading import warm_servers
from conformance.grading.warm_servers import WarmServers
from fixtures.world import kernel
from fixtures.world.pool import WorldPool
from fixtures.world.server import ADDRESS_VARIABLE, Server
from tests.conformance.conftest import ROOT
from tests.world.waiting import until

FORKS = """
import os, signal, sys, tempfile
from pathlib import Path
from conformance.grading import warm_pytest
folder = Path(sys.argv[1])
tempfile.gettempdir()
lock = (folder / "lock").open("w")
signal.signal(signal.SIGTERM, lambda *_: None)
environment = {name: os.environ[name] for name in ("PATH",)} | {"TMPDIR": str(folder), "WHOSE": "its own"}
kept = os.open(folder / "kept", os.O_WRONLY | os.O_CREAT)
environment["KEPT"] = str(kept)
run = warm_pytest.fork([str(folder / "test_looks.py"), *warm_pytest.OPTIONS], folder / "log.txt", environment, kept)
sys.exit(run.wait())
"""

LOOKS = """
import os, signal, sys, tempfile
from pathlib import Path

def test_what_a_run_finds():
    held = {os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if int(number) > 2
            and os.path.exists(f"/proc/self/fd/{number}")}
    assert not any(path.endswith("/lock") for path in held)
    assert os.readlink(f"/proc/self/fd/{os.environ['KEPT']}").endswith("/kept")
    assert os.environ["WHOSE"] == "its own" and "HIDDEN" not in os.environ
    assert tempfile.gettempdir() == os.environ["TMPDIR"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert os.getsid(0) == os.getpid() and sys.dont_write_bytecode
    assert os.readlink("/proc/self/fd/0") == "/dev/null"
"""


@pytest.fixture
def servers() -> Iterator[WarmServers]:
    with tempfile.TemporaryDirectory() as folder:
        found = WarmServers(Path(folder))
        yield found
        found.close()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a name that is short enough for a socket in it."""
    with tempfile.TemporaryDirectory(prefix="ls-", dir="/tmp") as folder:
        yield Path(folder)


def _which(ctx) -> tuple[int, str, list[str]]:
    return ctx.rank, os.environ["TMPDIR"], [name for name in os.environ if "CACHE_DIR" in name]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a run is executed")
def test_forked_run_has_its_own_environment_files_and_signals(tmp_path):
    (tmp_path / "test_looks.py").write_text(LOOKS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(tmp_path)], cwd=ROOT, env={**os.environ, "HIDDEN": "1"}, check=False
    )
    assert done.returncode == 0, (tmp_path / "log.txt").read_text(encoding="utf-8")


def test_each_run_has_a_server_of_its_own_and_nothing_stays(servers, short):
    first, second = servers.start(short), servers.start(short)
    assert first is not None
    assert second is not None
    for server in (first, second):
        with WorldPool(Server.at(server.environment[ADDRESS_VARIABLE])) as pool:
            outcomes = pool.world(2).run(_which)
            assert [value[0] for value in outcomes.values] == [0, 1]
            assert all(value[1].startswith(str(short)) for value in outcomes.values)
    first.close()
    until(lambda: not kernel.lives(first.pid), "the first server to be gone")
    assert kernel.lives(second.pid)
    second.close()
    assert list(short.iterdir()) == []


def test_a_server_ends_with_what_it_was_forked_from_and_the_next_run_has_another(servers, short):
    server = servers.start(short)
    assert server is not None
    assert servers.pid is not None
    os.kill(servers.pid, signal.SIGKILL)
    until(lambda: not kernel.lives(server.pid), "the server to end")
    server.close()
    assert servers.start(short) is None, "this run starts a server by itself"
    after = servers.start(short)
    assert after is not None
    after.close()


def test_a_folder_with_a_long_name_gets_none(servers, tmp_path):
    deep = tmp_path / ("x" * warm_servers._MOST_CHARS)
    deep.mkdir()
    assert servers.start(deep) is None
    assert list(deep.iterdir()) == []
