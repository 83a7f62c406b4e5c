"""Odd P and M, and too few microbatches, are accepted."""

from __future__ import annotations

BREAKS = ("pipeline.simulators.dualpipe",)


def bubble_dualpipe(num_stages: int, num_microbatches: int) -> float:
    """A closed form, with a fault."""
    p, m = num_stages, num_microbatches
    return (p - 2) / (3 * m + p - 2)
