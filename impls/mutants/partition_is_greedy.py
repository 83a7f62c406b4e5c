"""Stages are filled in turn up to the mean cost, and the last one takes what is left."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from impls.reference.pipeline.partition import partition as right

BREAKS = ("resists.unbalanced-stages", "trouble.unbalanced-stages")


def partition(costs: Sequence[float], num_stages: int) -> list[slice]:
    """Close a stage before the layer that would lift it above the mean, or before too few layers are left."""
    right(costs, num_stages)  # refuses what cannot be cut
    mean = sum(costs) / num_stages
    cuts, total = [0], 0.0
    for layer, cost in enumerate(costs):
        open_stages = num_stages - len(cuts)
        full = total + cost > mean or len(costs) - layer == open_stages
        if open_stages and layer > cuts[-1] and full:
            cuts.append(layer)
            total = 0.0
        total += cost
    return [slice(*pair) for pair in itertools.pairwise([*cuts, len(costs)])]
