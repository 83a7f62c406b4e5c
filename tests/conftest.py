"""Signals as a terminal leaves them: under nohup, or in the background of a script, some arrive here ignored."""

from __future__ import annotations

import signal

SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)


def pytest_configure() -> None:
    """Children inherit an ignored signal, and tests that send one would wait for ever."""
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
