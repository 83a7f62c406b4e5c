"""A cost below zero is taken as a bargain, and not as the mistake that it is."""

from __future__ import annotations

from collections.abc import Sequence

from impls.reference.pipeline.partition import partition as right

BREAKS = ("strategies.pipeline.partition",)


def partition(costs: Sequence[float], num_stages: int) -> list[slice]:
    """As the reference, with 0 for costs below it."""
    return right([max(cost, 0) for cost in costs], num_stages)
