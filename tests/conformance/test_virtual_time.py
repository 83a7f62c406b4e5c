"""Limits of waits, measured on the clock that jumps: each way in which a receive may wait for 30 seconds."""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic
from typing import Any

import pytest

from conformance.collectives.virtual_time import VirtualTime


def get_of(make: Callable[[], Any]) -> Callable[[], Any]:
    def wait() -> Any:
        return make().get(timeout=30)

    return wait


def condition() -> None:
    waiting = threading.Condition()
    with waiting:
        if not waiting.wait_for(lambda: False, timeout=30):
            raise TimeoutError


def event() -> None:
    if not threading.Event().wait(30):
        raise TimeoutError


def sleeping_loop() -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        time.sleep(0.25)
    raise TimeoutError


def spinning_loop() -> None:
    deadline = monotonic() + 30
    box: queue.Queue[int] = queue.Queue()
    while monotonic() < deadline:
        try:
            box.get_nowait()
        except queue.Empty:
            continue
    raise TimeoutError


def slices() -> None:
    box: SimpleQueue[int] = SimpleQueue()
    for _ in range(30):
        try:
            box.get(timeout=1)
        except queue.Empty:
            continue
    raise TimeoutError


WAITS = {
    "queue": get_of(queue.Queue),
    "lifo": get_of(queue.LifoQueue),
    "simple queue": get_of(lambda: queue.SimpleQueue()),
    "processes' queue": get_of(multiprocessing.Queue),
    "condition": condition,
    "event": event,
    "sleeping loop": sleeping_loop,
    "spinning loop": spinning_loop,
    "slices": slices,
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_wait_of_thirty_seconds_is_measured_as_that(wait: Callable[[], Any]) -> None:
    with VirtualTime() as clock:
        found = clock.measure(wait)
    assert found["after_s"] == pytest.approx(30.0, abs=1.0)
    assert found["ended"] in ("Empty", "TimeoutError")


def test_a_wait_without_a_limit_is_told_and_ended() -> None:
    box: queue.Queue[int] = queue.Queue()
    with VirtualTime() as clock:
        assert clock.measure(box.get)["ended"] == "waits without a limit"


def test_what_is_there_is_taken_and_no_time_passes() -> None:
    box: queue.Queue[int] = queue.Queue()
    box.put(1)
    with VirtualTime() as clock:
        found = clock.measure(lambda: box.get(timeout=30))
    assert (found["ended"], clock.waits) == ("returned", [])


def test_everything_is_as_before_afterwards() -> None:
    before = (queue.Queue.get, queue.SimpleQueue, time.sleep, time.monotonic, threading.Event.wait, monotonic)
    with VirtualTime() as clock:
        clock.measure(event)
    assert before == (queue.Queue.get, queue.SimpleQueue, time.sleep, time.monotonic, threading.Event.wait, monotonic)
