"""P-1 ranks of 2 stages each idle, in place of P-2."""

from __future__ import annotations

BREAKS = ("pipeline.simulators.dualpipe",)


def bubble_dualpipe(num_stages: int, num_microbatches: int) -> float:
    """A closed form, with a fault."""
    if not (num_stages % 2 == num_microbatches % 2 == 0 and 4 <= 2 * num_stages <= num_microbatches):
        raise ValueError(f"not for P = {num_stages} and M = {num_microbatches}")
    p, m = num_stages, num_microbatches
    return (p - 1) / (3 * m + p - 1)
