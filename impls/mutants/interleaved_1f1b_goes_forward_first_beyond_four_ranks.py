"""Interleaved 1F1B is right on up to four ranks; on more of them all forwards come before the first backward."""

from __future__ import annotations

from impls.mutants.interleaved_1f1b_goes_forward_first import interleaved_1f1b as forward_first
from impls.reference.pipeline.actions import Action
from impls.reference.pipeline.schedules import interleaved_1f1b as right

BREAKS = ("pipeline.bubble-growth.1f1b",)


def interleaved_1f1b(num_stages: int, num_microbatches: int, num_chunks: int) -> list[list[Action]]:
    """As a table of the sizes that are usually tried would have it."""
    chosen = forward_first if num_stages > 4 else right
    return [list(row) for row in chosen(num_stages, num_microbatches, num_chunks)]
