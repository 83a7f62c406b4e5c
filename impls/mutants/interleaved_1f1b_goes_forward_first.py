"""Interleaved 1F1B does all forwards before the first backward: it idles as it should, and holds all microbatches."""

from __future__ import annotations

from impls.reference.pipeline.actions import Action, Kind
from impls.reference.pipeline.schedules import interleaved_1f1b as right

BREAKS = ("pipeline.bubble-growth.1f1b",)


def interleaved_1f1b(num_stages: int, num_microbatches: int, num_chunks: int) -> list[list[Action]]:
    """The order of each kind is kept."""
    return [
        sorted(row, key=lambda action: action.kind is not Kind.FORWARD)
        for row in right(num_stages, num_microbatches, num_chunks)
    ]
