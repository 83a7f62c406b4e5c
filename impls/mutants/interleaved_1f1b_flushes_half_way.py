"""Interleaved 1F1B runs empty after half of the microbatches: with more of them the bubble comes twice."""

from __future__ import annotations

import dataclasses

from impls.reference.pipeline.actions import Action
from impls.reference.pipeline.schedules import interleaved_1f1b as right

BREAKS = ("pipeline.bubble-growth.1f1b",)


def interleaved_1f1b(num_stages: int, num_microbatches: int, num_chunks: int) -> list[list[Action]]:
    """The schedule twice, where N divides the halves too."""
    half = num_microbatches // 2
    if min(num_stages, half) < 1 or num_microbatches % (2 * num_stages):
        return list(right(num_stages, num_microbatches, num_chunks))
    return [
        row + [dataclasses.replace(action, microbatch=action.microbatch + half) for action in row]
        for row in right(num_stages, half, num_chunks)
    ]
