"""Warm ranks as the lessons' programs are run on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fixtures.world.outcome import Outcomes
from fixtures.world.pool import WorldPool
from lessons.ranks import Run


def on_warm_ranks(worlds: WorldPool, impl: str) -> Run:
    """Like `lessons.ranks.ranks_of`, on worlds that are there already."""

    def run(
        program: Callable[..., Any], world_size: int, *args: Any, bare: bool = False, deadline_s: float = 60.0
    ) -> Outcomes:
        return worlds.world(world_size, impl=impl, bare=bare, trace=False).run(program, *args, deadline_s=deadline_s)

    return run
