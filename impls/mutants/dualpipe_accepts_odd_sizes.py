"""Odd N and odd M are accepted, and what comes out then is no schedule."""

from __future__ import annotations

from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.dualpipe import dualpipe as both_ways

BREAKS = ("pipeline.bubble-growth.dualpipe",)


def dualpipe(num_stages: int, num_microbatches: int) -> Schedule:
    """As the reference, of the next smaller even sizes."""
    return both_ways(num_stages - num_stages % 2, num_microbatches - num_microbatches % 2)
