"""Ranks for a lesson: a server and warm worlds for as long as the command runs, as a function like `Subject.run`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from fixtures.world.outcome import Outcomes, RanksFailed
from fixtures.world.pool import WorldPool
from fixtures.world.server import Server

DEADLINE_S = 60.0
Say = Callable[[str], None]
Run = Callable[..., Outcomes]  # program, world_size, *arguments


@contextlib.contextmanager
def ranks_of(impl: str) -> Iterator[Run]:
    """Run programs on ranks that have this implementation; nothing is left of them in the end."""
    with Server.at_hand() as server, WorldPool(server) as pool:

        def on_ranks(
            program: Callable[..., Any],
            world_size: int,
            *args: Any,
            bare: bool = False,
            deadline_s: float = DEADLINE_S,
            **kwargs: Any,
        ) -> Outcomes:
            world = pool.world(world_size, impl=impl, bare=bare)  # traced: a deadlock is told at once
            return world.run(program, *args, deadline_s=deadline_s, **kwargs)

        yield on_ranks


def came_to_no_end(failed: RanksFailed) -> str:
    """Why a lesson stopped, in a sentence where the implementation does not have what the lesson is about."""
    for outcome in failed.outcomes:
        if outcome.raised is not None and outcome.raised.type.rpartition(".")[2] == "NotProvided":
            return f"There is nothing to show: {outcome.raised.text}. See: python -m conformance show"
    return f"The lesson came to no end: {failed}"
