"""The bubble is a share of the time without idling, and not of the total time."""

from __future__ import annotations

from impls.reference import *  # noqa: F403
from impls.reference.pipeline import bubbles

BREAKS = ("lessons.79",)


def bubble_fraction(num_stages: int, num_microbatches: int) -> float:
    """GPipe."""
    return bubbles.bubble_fraction(num_stages, num_microbatches, of="ideal")


def bubble_1f1b(num_stages: int, num_microbatches: int) -> float:
    """1F1B."""
    return bubbles.bubble_1f1b(num_stages, num_microbatches, of="ideal")
