"""Slices begin a row apart and overlap."""

from __future__ import annotations

BREAKS = ("loop.slices", "resists.shared-shuffle-seed")


def batch_slice(step: int, rank: int, world_size: int, batch_size: int) -> slice:
    """Rows of this rank, with a fault."""
    begin = step * world_size * batch_size + rank
    return slice(begin, begin + batch_size)
