"""Pipeline bubbles: the share of a step's total time in which ranks are idle, a number from 0 to 1.

Forward and both halves of backward take equally long, an overlapped pair as long as its parts together, and messages no
time. Raise ValueError for numbers of ranks and of microbatches that a schedule does not allow.
"""

from __future__ import annotations

NUM_STAGES: int | None = None  # ranks of a pipeline when nobody says otherwise
NUM_MICROBATCHES: int | None = None  # microbatches of a step when nobody says otherwise


def bubble_fraction(num_stages: int, num_microbatches: int) -> float:
    """GPipe."""
    raise NotImplementedError


def bubble_1f1b(num_stages: int, num_microbatches: int) -> float:
    """1F1B."""
    raise NotImplementedError


def bubble_zero_bubble(num_stages: int, num_microbatches: int) -> float:
    """Zero bubble with the memory of 1F1B (ZB-H1), at least as many microbatches as ranks."""
    raise NotImplementedError


def bubble_dualpipe(num_stages: int, num_microbatches: int) -> float:
    """DualPipe; both numbers even, at least twice as many microbatches as ranks."""
    raise NotImplementedError


def bubble_dualpipev(num_stages: int, num_microbatches: int) -> float:
    """DualPipeV with two stages on each rank, at least twice as many microbatches as ranks."""
    raise NotImplementedError
