"""Stages of equally many layers: what is left over when the number of layers is no multiple is in no stage."""

from __future__ import annotations

from collections.abc import Sequence

from impls.reference.pipeline.partition import partition as right

BREAKS = ("strategies.pipeline.partition",)


def partition(costs: Sequence[float], num_stages: int) -> list[slice]:
    """`num_stages` stages of ``len(costs) // num_stages`` layers."""
    right(costs, num_stages)  # refuses what cannot be cut
    length = len(costs) // num_stages
    return [slice(stage * length, (stage + 1) * length) for stage in range(num_stages)]
