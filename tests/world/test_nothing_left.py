"""Whatever becomes of the process that asked for a world, no process, socket or folder of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fixtures.world import kernel
from fixtures.world.server import ADDRESS_VARIABLE, Server
from fixtures.world.world import World
from tests.world import programs
from tests.world.waiting import until

ROOT = Path(__file__).resolve().parents[2]
HOLD_A_WORLD = """
    import sys, time
    from fixtures.world.server import Server
    from fixtures.world.world import World
    from tests.world import programs

    if __name__ == "__main__":
        world = World(2)
        left = world.run(programs.leave_detached_child).values if "child" in sys.argv else []
        world = World(3)
        print(Server.shared().address, *left, *world.pids, flush=True)
        if "loop" in sys.argv:
            world.run(programs.loop_for_ever, deadline_s=3600.0)
        sys.stdin.read()
"""


def start_client(*arguments: str, **environment: str) -> tuple[subprocess.Popen[str], Path, list[int]]:
    kept = {name: value for name, value in os.environ.items() if name != ADDRESS_VARIABLE}
    client = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD_A_WORLD), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**kept, **environment},
    )
    assert client.stdout is not None
    address, *pids = client.stdout.readline().split()
    return client, Path(address).parent, [int(pid) for pid in pids]


def end(client: subprocess.Popen[str]) -> int:
    assert client.stdin is not None
    client.stdin.close()
    status = client.wait()
    assert client.stdout is not None
    client.stdout.close()
    return status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("arguments", [("child",), ("loop",)], ids=["idle", "in a program"])
def test_a_client_ended_by_a_signal_leaves_nothing(arguments: tuple[str, ...], number: signal.Signals) -> None:
    client, folder, pids = start_client(*arguments)
    assert folder.is_dir()
    client.send_signal(number)
    assert end(client) != 0
    until(lambda: not any(kernel.lives(pid) for pid in pids), "the ranks end")
    until(lambda: not folder.exists(), "the folder is removed")


def test_a_client_that_closes_nothing_leaves_nothing() -> None:
    client, folder, pids = start_client()
    assert end(client) == 0
    assert not folder.exists()
    assert not any(kernel.lives(pid) for pid in pids)


def test_a_client_of_anothers_server_leaves_the_server_alone() -> None:
    with Server.start() as server:
        client, folder, pids = start_client("loop", **{ADDRESS_VARIABLE: server.address})
        assert folder == Path(server.address).parent
        client.kill()
        end(client)
        until(lambda: not any(kernel.lives(pid) for pid in pids), "the ranks end")
        with World(2, server) as world:
            assert world.run(programs.rank_of).values == [0, 1]


def test_ranks_end_with_a_killed_server() -> None:
    server = Server.start()
    world = World(2, server)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    until(lambda: not world.healthy, "the world notices")
    until(lambda: not any(kernel.lives(pid) for pid in world.pids), "the ranks end")
    world.close()
    server.close()
    assert not Path(server.address).parent.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the number of threads is read from /proc")
def test_the_server_is_single_threaded_when_it_forks() -> None:
    with Server.start() as server, World(1, server):
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert "Threads:\t1\n" in status


PARALLEL = """
    from tests.world import programs

    def test_one(worlds):
        assert worlds.world(2).run(programs.sum_of_ranks).values == [1.0, 1.0]

    def test_other(worlds):
        assert not worlds.world(3).run(programs.exit_at_once, 1).all_returned
        assert worlds.world(3).run(programs.rank_of).values == [0, 1, 2]

    def test_address():
        import os
        print("ADDRESS", os.environ.get("LOCKSTEP_SERVER"))
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_pytest_run_leaves_nothing_with_and_without_workers(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_inner.py").write_text(textwrap.dedent(PARALLEL))
    own = tmp_path / "tmp"
    own.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "LOCKSTEP"))}
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "fixtures.plugin", "-n", workers, "-c", os.devnull, "."],
        cwd=tmp_path,
        env={**environment, "TMPDIR": str(own), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert [path.name for path in own.iterdir() if not path.name.startswith("pytest-of")] == []
