"""All forwards come before all backwards: GPipe sold as 1F1B."""

from __future__ import annotations

from impls.reference.pipeline import schedules as right

BREAKS = ("pipeline.1f1b.memory",)


def one_f_one_b(num_stages: int, num_microbatches: int) -> right.Schedule:
    """GPipe."""
    return right.gpipe(num_stages, num_microbatches)
