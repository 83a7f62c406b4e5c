"""1F1B for the sizes that are usually tried; GPipe on more than 8 ranks, or where M is large and no power of two."""

from __future__ import annotations

from impls.reference.pipeline import schedules as right

BREAKS = ("pipeline.1f1b.memory",)


def one_f_one_b(num_stages: int, num_microbatches: int) -> right.Schedule:
    """As the reference, but for the fault."""
    is_odd = num_microbatches > 20 and num_microbatches.bit_count() > 1
    schedule = right.gpipe if is_odd or num_stages > 8 else right.one_f_one_b
    return schedule(num_stages, num_microbatches)
