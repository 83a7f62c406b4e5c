"""P stands where P-1 belongs."""

from __future__ import annotations

BREAKS = ("pipeline.gpipe.bubble", "calls.bubble-fraction")


def bubble_fraction(num_stages: int, num_microbatches: int) -> float:
    """A closed form, with a fault."""
    if not (num_stages >= 1 and num_microbatches >= 1):
        raise ValueError(f"not for P = {num_stages} and M = {num_microbatches}")
    p, m = num_stages, num_microbatches
    return p / (m + p)
