"""Interleaved 1F1B leaves the last microbatches out where N does not divide M, and says nothing."""

from __future__ import annotations

from impls.reference.pipeline.actions import Action
from impls.reference.pipeline.schedules import interleaved_1f1b as right

BREAKS = ("pipeline.bubble-growth.1f1b",)


def interleaved_1f1b(num_stages: int, num_microbatches: int, num_chunks: int) -> list[list[Action]]:
    """As many whole groups of N as there are."""
    rest = num_microbatches % num_stages if min(num_stages, num_microbatches) > 0 else 0
    return list(right(num_stages, num_microbatches - rest, num_chunks))
