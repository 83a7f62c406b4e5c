"""The cut is included on both of its sides: neighbouring stages have a layer in common."""

from __future__ import annotations

from collections.abc import Sequence

from impls.reference.pipeline.partition import partition as right

BREAKS = ("strategies.pipeline.partition",)


def partition(costs: Sequence[float], num_stages: int) -> list[list[int]]:
    """The layers of each stage, up to the next one's first."""
    stages = [range(len(costs))[stage] for stage in right(costs, num_stages)]
    return [list(range(stage[0], min(stage[-1] + 2, len(costs)))) for stage in stages]
