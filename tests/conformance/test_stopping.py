"""The signals of a cluster interrupt a run once, as Ctrl-C does."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest

from conformance import stopping
from fixtures.world import kernel


@pytest.fixture
def heed():
    """`stopping.heed` in a process whose signals are as the system leaves them; the handlers are put back."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in stopping.SIGNALS}
    yield stopping.heed
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", stopping.SIGNALS, ids=lambda number: number.name)
def test_signal_interrupts_the_main_thread_once(heed, number):
    restore = heed()
    with pytest.raises(KeyboardInterrupt, match=f"ended by {number.name}"):
        signal.raise_signal(number)
    signal.raise_signal(number)
    restore()
    assert signal.getsignal(number) is signal.SIG_DFL


def test_children_of_its_own_process_group_are_interrupted_too(heed, monkeypatch):
    reached = []
    monkeypatch.setattr(kernel, "children", lambda parent: [11, 12, 13])
    monkeypatch.setattr(kernel, "group_of", {11: os.getpgrp(), 12: None, 13: 13}.get)
    monkeypatch.setattr(kernel, "kill", lambda pid, number: reached.append((pid, number)))
    heed()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert reached == [(11, signal.SIGINT)]


def test_signal_interrupts_neither_the_end_of_the_workers_nor_the_writing_of_the_report(heed):
    told = []
    manager = pytest.PytestPluginManager()
    workers = SimpleNamespace(pytest_sessionfinish=lambda: told.append(signal.raise_signal(signal.SIGTERM)))
    manager.register(stopping)
    manager.register(workers)  # later, so that it would come first
    heed()
    manager.hook.pytest_sessionfinish(session=None, exitstatus=0)
    assert told == [None]


def test_what_is_ignored_stays_ignored(heed):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    heed()
    signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
