"""The teaching approximation (P-1)/(3M+2(P-1))."""

from __future__ import annotations

BREAKS = ("pipeline.simulators.zb",)


def bubble_zero_bubble(num_stages: int, num_microbatches: int) -> float:
    """A closed form, with a fault."""
    if not (1 <= num_stages <= num_microbatches):
        raise ValueError(f"not for P = {num_stages} and M = {num_microbatches}")
    p, m = num_stages, num_microbatches
    return (p - 1) / (3 * m + 2 * (p - 1))
