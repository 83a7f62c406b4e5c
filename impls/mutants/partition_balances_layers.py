"""Every stage gets as many layers as the others, whatever they cost."""

from __future__ import annotations

from collections.abc import Sequence

from impls.reference.pipeline.partition import partition as right

BREAKS = ("resists.unbalanced-stages", "trouble.unbalanced-stages")


def partition(costs: Sequence[float], num_stages: int) -> list[slice]:
    """The best cut of layers that cost the same."""
    right(costs, num_stages)  # refuses what cannot be cut
    return right([1] * len(costs), num_stages)
