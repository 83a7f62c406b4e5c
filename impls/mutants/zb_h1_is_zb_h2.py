"""ZB-H2 under the name of ZB-H1: a smaller bubble for twice the memory."""

from __future__ import annotations

from impls.reference.pipeline import zero_bubble as right
from impls.reference.pipeline.actions import Schedule

BREAKS = ("pipeline.bubble-growth.zb", "pipeline.zb.split")


def zb_h1(num_stages: int, num_microbatches: int) -> Schedule:
    """ZB-H2 where there are microbatches enough for it."""
    name = right.zb_h2 if num_microbatches >= 2 * num_stages - 1 >= 1 else right.zb_h1
    return name(num_stages, num_microbatches)
