"""A clock that jumps: a wait with a time limit in Python's own primitives ends at once, and the time counts as gone.

So a limit of 30 s can be measured in milliseconds, at the wait itself, whatever the code says of itself: queues,
conditions, events, sleeping in a loop, and deadlines read off ``time.monotonic``. A wait that finds what it waits for
returns it as usual. A wait without a limit is reported and ended.
"""

from __future__ import annotations

import multiprocessing.queues
import queue
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

_REAL_MONOTONIC = time.monotonic
_REAL_SLEEP = time.sleep
_MAX_WAITS = 20  # kept for the evidence
_GLANCE_S = 1e-3
_REAL_LIMIT_S = 3.0  # of a loop that never waits in a way known here


class WithoutLimit(BaseException):
    """Ends a wait that nothing else would end."""


class VirtualTime:
    """While it is entered, waits of the thread in `measure` are jumped over; `waits` has the limits they asked for."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._gone_s = 0.0
        self._thread = -1
        self._undo: list[Callable[[], None]] = []

    def measure(self, body: Callable[[], Any]) -> dict[str, Any]:
        """Run ``body`` in this thread; how long it took on this clock, and the exception that ended it."""
        self._thread = threading.get_ident()
        self._until = _REAL_MONOTONIC() + _REAL_LIMIT_S
        began = time.monotonic()
        try:
            body()
            ended, text = "returned", ""
        except WithoutLimit as error:
            ended, text = "waits without a limit", str(error)
        except Exception as error:
            ended, text = type(error).__name__, str(error)
        is_timeout = ended == "TimeoutError"
        return {"ended": ended, "text": text, "is_timeout": is_timeout, "after_s": time.monotonic() - began}

    def __enter__(self) -> Self:
        for kind in (queue.Queue, multiprocessing.queues.Queue):
            self._replace(kind, "get", self._get(kind.get))
        self._replace(threading.Condition, "wait", self._wait(threading.Condition.wait))
        self._replace(threading.Event, "wait", self._wait(threading.Event.wait))
        clocks = (time.monotonic, time.perf_counter, time.time)
        news = {time.sleep: self._sleep, queue.SimpleQueue: self._simple_queue()}
        self._replace_everywhere({**news, **{clock: self._shifted(clock) for clock in clocks}})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._undo:
            self._undo.pop()()

    # -- replacing -----------------------------------------------------------------------------------------------------

    def _replace(self, owner: Any, name: str, new: Any) -> None:
        old = getattr(owner, name)
        setattr(owner, name, new)
        self._undo.append(lambda: setattr(owner, name, old))

    def _replace_everywhere(self, news: dict[Any, Any]) -> None:
        """What is built in and cannot be patched: replaced wherever a module has a name for it."""
        by_id = {id(old): new for old, new in news.items()}
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "") in (__name__, "_queue"):
                continue
            for name, value in list(getattr(module, "__dict__", {}).items()):
                if id(value) in by_id:
                    self._replace(module, name, by_id[id(value)])

    # -- waits ---------------------------------------------------------------------------------------------------------

    def _jump(self, timeout: float | None, what: str) -> None:
        """Let the time of a wait pass that has found nothing."""
        if timeout is None:
            raise WithoutLimit(what)
        if _REAL_MONOTONIC() > self._until:
            raise WithoutLimit(f"{what}, again and again")
        if len(self.waits) < _MAX_WAITS:
            self.waits.append(float(timeout))
        self._gone_s += max(0.0, float(timeout))

    def _is_measured(self) -> bool:
        return threading.get_ident() == self._thread

    def _get(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def get(this: Any, block: bool = True, timeout: float | None = None) -> Any:
            if not self._is_measured():
                return real(this, block, timeout)
            try:
                return real(this, False)
            except queue.Empty:
                if block:
                    self._jump(timeout, f"{type(this).__name__}.get()")
                self._gone_s += _GLANCE_S  # a look without waiting takes some time too
                raise

        return get

    def _wait(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def wait(this: Any, timeout: float | None = None) -> Any:
            if not self._is_measured():
                return real(this, timeout)
            found = real(this, 0)
            if not found:
                self._jump(timeout, f"{type(this).__name__}.wait()")
            return found

        return wait

    def _sleep(self, seconds: float) -> None:
        if self._is_measured():
            self._jump(seconds, "time.sleep()")
        else:
            _REAL_SLEEP(seconds)

    def _shifted(self, real: Callable[[], float]) -> Callable[[], float]:
        def now() -> float:
            return real() + (self._gone_s if self._is_measured() else 0.0)

        return now

    def _simple_queue(self) -> Any:
        class SimpleQueue(queue.SimpleQueue[Any]):
            pass

        SimpleQueue.get = self._get(queue.SimpleQueue.get)  # type: ignore[method-assign]
        return SimpleQueue
