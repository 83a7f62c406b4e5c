"""The W that were put off longest are not done at all."""

from __future__ import annotations

from impls.reference.pipeline import zero_bubble as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.zb.split", "pipeline.bubble-growth.zb")


def zb_h1(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, but for the fault."""
    *others, last = right.zb_h1(num_stages, num_microbatches)
    return [*others, last[:-1]]
