"""Ranks are numbered from the other end."""

from __future__ import annotations

from impls.reference.calls import init_group as right

BREAKS = ("calls.init-gloo", "loop.rendezvous")


def init_group(rank: int, world_size: int, init_file: str | None = None, port: int | None = None) -> None:
    """The last shall be first."""
    right(world_size - 1 - rank, world_size, init_file, port)
