"""The port that is asked for is ignored."""

from __future__ import annotations

from impls.reference.calls import init_group as right

BREAKS = ("calls.master-port",)


def init_group(rank: int, world_size: int, port: int) -> None:
    """Meet at a port of our own choosing."""
    right(rank, world_size, port=29657)
