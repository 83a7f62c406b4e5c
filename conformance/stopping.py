"""Being asked to end, by a cluster or by timeout(1), is the same as Ctrl-C: the report is still written."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import pytest

from fixtures.world import kernel

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def heed() -> Callable[[], None]:
    """From now on these signals interrupt the main thread, once; returns what puts the earlier handlers back.

    What is ignored, as SIGHUP is under nohup, stays so, and so do handlers of others.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    heeded = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in heeded:
        signal.signal(number, _interrupt)

    def restore() -> None:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)

    return restore


def ignore() -> None:
    """The run is at its end, by itself or by such a signal: another one must not cost the report."""
    for number in SIGNALS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_IGN)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Before xdist ends its workers, which takes a while."""
    ignore()


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    ignore()  # timeout(1) sends it twice, to the process and to its group
    _interrupt_workers()
    raise KeyboardInterrupt(f"ended by {signal.Signals(number).name}")


def _interrupt_workers() -> None:
    """Reach what Ctrl-C in a terminal would reach as well; where the platform does not tell, xdist ends its workers."""
    for pid in kernel.children(os.getpid()):
        if kernel.group_of(pid) == os.getpgrp():
            kernel.kill(pid, signal.SIGINT)
