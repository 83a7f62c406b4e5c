"""ZB-H1 is right on up to four ranks; on more of them it holds what ZB-H2 holds."""

from __future__ import annotations

from impls.mutants.zb_h1_is_zb_h2 import zb_h1 as other
from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.zero_bubble import zb_h1 as right

BREAKS = ("pipeline.bubble-growth.zb",)


def zb_h1(num_stages: int, num_microbatches: int) -> Schedule:
    """As a table of the sizes that are usually tried would have it."""
    return (other if num_stages > 4 else right)(num_stages, num_microbatches)
