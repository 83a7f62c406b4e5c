"""A world of the plainest kind, so that the hang witness is tested by itself: forked ranks, a board, the detector."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import os
import signal
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch._dynamo  # DistributedDataParallel needs it: imported once here, not in every rank
import torch.distributed as dist

from fixtures.witness.board import Board
from fixtures.witness.hang import QUIET_S, Detector, Verdict
from fixtures.witness.process_group import install
from fixtures.witness.trace import Recorder

POLL_S = 0.01
TIMEOUT_S = 60  # of the process groups: no verdict below ever waits for it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a world: the verdict if there was one, and when."""

    verdict: Verdict | None
    stalled: Verdict | None  # what the witness said at the limit
    seconds: float  # from the start of the program to the verdict or the end
    exits: tuple[int | None, ...]  # exit status of each rank; None: was alive at the end
    polls: int
    poll_s: float  # all polls together


def run(
    program: Callable[[int, int], None],
    world_size: int,
    folder: Path,
    *,
    limit_s: float = 60.0,
    quiet_s: float = QUIET_S,
    portable: bool = False,
) -> Report:
    """Run the program on forked gloo ranks until all have ended, the witness speaks, or the limit is reached."""
    torch.set_num_threads(1)
    board = Board.create(folder / "board", world_size)
    pids = [_fork(program, rank, world_size, folder, portable) for rank in range(world_size)]
    detector = Detector(board, pids, quiet_s=quiet_s)
    exits: list[int | None] = [None] * world_size
    verdict = stalled = None
    polls, poll_s = 0, 0.0
    try:
        began = time.monotonic()
        while None in exits and verdict is None and time.monotonic() - began < limit_s:
            time.sleep(POLL_S)
            before = time.monotonic()
            verdict = detector.poll()
            poll_s += time.monotonic() - before
            polls += 1
            _reap(pids, exits, folder)
        seconds = time.monotonic() - began
        if verdict is None and None in exits:
            stalled = detector.stalled()
    finally:
        _reap(pids, exits, folder)
        for pid, status in zip(pids, exits, strict=True):
            if status is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        board.close()
    return Report(verdict=verdict, stalled=stalled, seconds=seconds, exits=tuple(exits), polls=polls, poll_s=poll_s)


def _reap(pids: list[int], exits: list[int | None], folder: Path) -> None:
    for rank, pid in enumerate(pids):
        if exits[rank] is None and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            exits[rank] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            (folder / f"ended-{rank}").touch()  # the others need not stay for one that died


def _fork(program: Callable[[int, int], None], rank: int, world_size: int, folder: Path, portable: bool) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        _rank(program, rank, world_size, folder, portable)
        status = 0
    except BaseException:
        traceback.print_exc()  # shown by pytest when the test fails
    finally:
        os._exit(status)


def _rank(program: Callable[[int, int], None], rank: int, world_size: int, folder: Path, portable: bool) -> None:
    """Run the program, then stay until all ranks have, as a warm rank does."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # what pytest's plug-ins have set is not the rank's
    faulthandler.disable()
    recorder = Recorder()
    board = Board.attach(folder / "board", rank, portable=portable)
    recorder.add_sink(board)
    install(recorder)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    board.program(0)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/rendezvous",
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=TIMEOUT_S),
    )
    recorder.reset()
    board.program(1)
    try:
        program(rank, world_size)
    except BaseException:
        board.finished(1, raised=True)
    else:
        board.finished(1)
    (folder / f"ended-{rank}").touch()
    while len(list(folder.glob("ended-*"))) < world_size:
        time.sleep(POLL_S)
