"""The last rank does the first W before its I."""

from __future__ import annotations

from impls.reference.pipeline import zero_bubble as right
from impls.reference.pipeline.actions import Action, Kind

BREAKS = ("pipeline.zb.split", "pipeline.overlap.zb")


def zb_h1(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, but for the fault."""
    *others, last = right.zb_h1(num_stages, num_microbatches)
    early = next(action for action in last if action.kind is Kind.WEIGHT)
    rest = [action for action in last if action != early]
    return [*others, [rest[0], early, *rest[1:]]]
