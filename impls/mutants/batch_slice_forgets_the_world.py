"""The offset of a step lacks the factor N: ranks see rows again."""

from __future__ import annotations

BREAKS = ("loop.slices", "resists.shared-shuffle-seed")


def batch_slice(step: int, rank: int, world_size: int, batch_size: int) -> slice:
    """Rows of this rank, with a fault."""
    begin = step * batch_size + rank * batch_size
    return slice(begin, begin + batch_size)
