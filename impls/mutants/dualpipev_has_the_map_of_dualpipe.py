"""There are N stages with two copies each: DualPipe under the name of DualPipeV."""

from __future__ import annotations

from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.dualpipe import dualpipe as both_ways
from impls.reference.pipeline.dualpipe import dualpipev as in_a_v

BREAKS = ("pipeline.copies.dualpipev",)


def dualpipev(num_stages: int, num_microbatches: int) -> Schedule:
    """DualPipe where there is one, with as many ranks."""
    in_a_v(num_stages, num_microbatches)
    if num_stages % 2 or num_microbatches % 2:
        return in_a_v(num_stages, num_microbatches)
    return both_ways(num_stages, num_microbatches)
