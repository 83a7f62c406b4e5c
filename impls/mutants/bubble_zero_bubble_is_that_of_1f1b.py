"""No W fills a gap: the bubble of 1F1B."""

from __future__ import annotations

BREAKS = ("pipeline.simulators.zb",)


def bubble_zero_bubble(num_stages: int, num_microbatches: int) -> float:
    """A closed form, with a fault."""
    if not (1 <= num_stages <= num_microbatches):
        raise ValueError(f"not for P = {num_stages} and M = {num_microbatches}")
    p, m = num_stages, num_microbatches
    return (p - 1) / (m + p - 1)
