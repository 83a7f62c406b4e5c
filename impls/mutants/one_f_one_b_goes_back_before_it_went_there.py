"""The last rank does the backward of its first microbatch before the forward."""

from __future__ import annotations

from impls.reference.pipeline import schedules as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.1f1b.same-bubble", "pipeline.bubble-growth.1f1b", "pipeline.overlap.1f1b")


def one_f_one_b(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, but for the fault."""
    *others, last = right.one_f_one_b(num_stages, num_microbatches)
    return [*others, [*last[1::-1], *last[2:]]]
