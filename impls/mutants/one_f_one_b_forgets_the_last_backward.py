"""1F1B: the first rank, for which nobody waits, leaves out the last backward."""

from __future__ import annotations

from impls.reference import *  # noqa: F403
from impls.reference.pipeline import schedules
from impls.reference.pipeline.actions import Action

BREAKS = ("lessons.79",)


def one_f_one_b(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """1F1B."""
    first, *others = schedules.one_f_one_b(num_stages, num_microbatches)
    return [first[:-1], *others]
