"""The last rank has nothing to do: its stage is on no rank."""

from __future__ import annotations

from impls.reference.pipeline import schedules as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.copies.1f1b", "pipeline.1f1b.same-bubble")


def one_f_one_b(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference with one rank fewer."""
    if num_stages < 2:
        return list(right.one_f_one_b(num_stages, num_microbatches))
    return [*right.one_f_one_b(num_stages - 1, num_microbatches), []]
