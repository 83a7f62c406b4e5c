"""All microbatches enter at rank 0: the other half of the stages is never used."""

from __future__ import annotations

from impls.reference.pipeline import schedules as right
from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.dualpipe import dualpipe as checked

BREAKS = ("pipeline.copies.dualpipe", "pipeline.overlap.dualpipe")


def dualpipe(num_stages: int, num_microbatches: int) -> Schedule:
    """1F1B, of the sizes that DualPipe takes."""
    checked(num_stages, num_microbatches)
    return right.one_f_one_b(num_stages, num_microbatches)
