"""W of a stage is done on the rank behind, which needs the stage's parameters for that."""

from __future__ import annotations

from impls.reference.pipeline import zero_bubble as right
from impls.reference.pipeline.actions import Action, Kind

BREAKS = ("pipeline.copies.zb", "pipeline.zb.split")


def zb_h1(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, but for the fault."""
    rows = list(right.zb_h1(num_stages, num_microbatches))
    weights = [[action for action in row if action.kind is Kind.WEIGHT] for row in rows]
    kept = [[action for action in row if action.kind is not Kind.WEIGHT] for row in rows]
    return [own + weights[rank - 1] for rank, own in enumerate(kept)]
