"""The model is cut into 2N stages, each on one rank: DualPipeV under the name of DualPipe."""

from __future__ import annotations

from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.dualpipe import dualpipe as both_ways
from impls.reference.pipeline.dualpipe import dualpipev as in_a_v

BREAKS = ("pipeline.copies.dualpipe", "pipeline.bubble-growth.dualpipe")


def dualpipe(num_stages: int, num_microbatches: int) -> Schedule:
    """DualPipeV."""
    both_ways(num_stages, num_microbatches)
    return in_a_v(num_stages, num_microbatches)
