"""Sizes that there are not give a share all the same."""

from __future__ import annotations

BREAKS = ("pipeline.simulators.1f1b",)


def bubble_1f1b(num_stages: int, num_microbatches: int) -> float:
    """A closed form, with a fault."""
    p, m = num_stages, num_microbatches
    return (p - 1) / max(m + p - 1, 1)
