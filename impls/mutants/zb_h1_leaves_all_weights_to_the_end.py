"""All W come after everything else, and until then all microbatches' activations are held."""

from __future__ import annotations

from impls.reference.pipeline import zero_bubble as right
from impls.reference.pipeline.actions import Action, Kind

BREAKS = ("pipeline.bubble-growth.zb",)


def zb_h1(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, with W last."""
    rows = right.zb_h1(num_stages, num_microbatches)
    return [sorted(row, key=lambda action: action.kind is Kind.WEIGHT) for row in rows]
