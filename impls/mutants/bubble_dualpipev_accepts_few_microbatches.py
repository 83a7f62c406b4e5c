"""Fewer than 2P microbatches are accepted."""

from __future__ import annotations

BREAKS = ("pipeline.simulators.dualpipev",)


def bubble_dualpipev(num_stages: int, num_microbatches: int) -> float:
    """A closed form, with a fault."""
    p, m = num_stages, num_microbatches
    return (p - 1) / (3 * m + p - 1)
