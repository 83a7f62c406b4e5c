"""Costs are balanced as if layers were no chain: each goes to the stage that has least so far."""

from __future__ import annotations

from collections.abc import Sequence

from impls.reference.pipeline.partition import partition as right

BREAKS = ("strategies.pipeline.partition", "resists.unbalanced-stages")


def partition(costs: Sequence[float], num_stages: int) -> list[list[int]]:
    """The costliest layers first, each to the cheapest stage."""
    right(costs, num_stages)  # refuses what cannot be cut
    stages: list[list[int]] = [[] for _ in range(num_stages)]
    for layer in sorted(range(len(costs)), key=lambda layer: -costs[layer]):
        min(stages, key=lambda stage: (sum(costs[i] for i in stage), len(stage))).append(layer)
    return [sorted(stage) for stage in stages]
