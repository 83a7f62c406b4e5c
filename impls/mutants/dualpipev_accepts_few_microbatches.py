"""Fewer than 2N microbatches are accepted, and what comes out then is no schedule."""

from __future__ import annotations

from impls.reference.pipeline.actions import Action
from impls.reference.pipeline.dualpipe import dualpipev as in_a_v

BREAKS = ("pipeline.bubble-growth.dualpipev",)


def dualpipev(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, with the microbatches that there are not left out."""
    rows = in_a_v(num_stages, max(num_microbatches, 2 * num_stages))
    return [[action for action in row if action.microbatch < num_microbatches] for row in rows]
