"""The signals of a cluster interrupt a run once, as Ctrl-C does."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest

from conformance import ending, plugin, stopping
from conformance.journal import Journal
from conformance.state import STATE
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


def test_signal_does_not_interrupt_the_writing_of_the_report(heed, monkeypatch):
    state = SimpleNamespace(journal=Journal(None, "main"), is_controller=True)
    config = SimpleNamespace(stash={STATE: state}, option=SimpleNamespace(collectonly=False))
    written = []
    monkeypatch.setattr(ending, "finish", lambda *_: written.append(signal.raise_signal(signal.SIGTERM)))
    heed()
    plugin.pytest_sessionfinish(SimpleNamespace(config=config))
    assert written == [None]


def test_what_is_ignored_stays_ignored(heed):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    heed()
    signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
