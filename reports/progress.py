"""How far a run is, for whoever waits for it: one whole line now and then, also in a log that shows whole lines only.

pytest's own letters stay as they are. On a CI a run of twenty minutes gets twenty lines.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from conformance.verdict import Verdict
from reports import paper

EVERY_S = 60.0
_FORESEEN = 0.05  # of the checks are over before the rest is estimated


class Progress:
    """Counts what is over and says so at most once in ``every_s`` seconds; registered on the controller."""

    def __init__(
        self,
        write: Callable[[str], None],
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._every_s = every_s
        self._clock = clock
        self._began = self._told = clock()
        self._total = 0
        self._over: set[str] = set()
        self._red: Counter[str] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without workers: know how many there are."""
        self._begin(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """With workers: each of them collects the same."""
        if not self._over:
            self._begin(len(ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what is in red."""
        verdict = getattr(report, "lockstep", None)
        if verdict is not None and not Verdict(verdict).is_passing:
            self._red[verdict] += 1
        elif verdict is None and report.failed:
            self._red["failed"] += 1

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Say how far the run is, when it was not said for a while and is not at its end."""
        self._over.add(nodeid)
        now = self._clock()
        if now - self._told >= self._every_s and len(self._over) < self._total:
            self._told = now
            self._write(self.line())

    def line(self) -> str:
        """One line: how many are over, how long it took and may take, what is in red."""
        done, passed_s = len(self._over), self._clock() - self._began
        foreseen = ""
        if done >= _FORESEEN * self._total:
            foreseen = f", about {_span(passed_s / done * (self._total - done))} to go"
        red = ", ".join(f"{count:,} {verdict}" for verdict, count in self._red.most_common())
        return f"lockstep: {done:,} of {self._total:,} after {_span(passed_s)}{foreseen}; {red or 'nothing in red'}"

    def _begin(self, total: int) -> None:
        self._total = total
        self._began = self._told = self._clock()


def register(config: pytest.Config, every_s: float) -> None:
    """Show progress in this run, unless pytest shows every test by name or nothing at all."""
    if every_s and config.option.verbose in (0, -1) and config.pluginmanager.hasplugin("terminalreporter"):
        writer = config.get_terminal_writer()

        def write(line: str) -> None:
            if writer.width_of_current_line:  # pytest is in the middle of a line of letters
                writer.line()
            writer.line(paper.clipped(line, paper.columns()))
            writer.flush()

        config.pluginmanager.register(Progress(write, every_s), "lockstep-progress")


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
