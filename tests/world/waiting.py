"""Waiting for what another process does, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 20.0


def until(holds: Callable[[], bool], what: str) -> None:
    """Return as soon as ``holds``; fail when it does not in a generous time."""
    limit = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < limit, f"waited {LIMIT_S:g} s in vain: {what}"
        time.sleep(0.01)
