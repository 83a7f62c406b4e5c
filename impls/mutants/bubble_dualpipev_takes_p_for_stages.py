"""P is taken for the number of stages: half as many ranks."""

from __future__ import annotations

BREAKS = ("pipeline.simulators.dualpipev",)


def bubble_dualpipev(num_stages: int, num_microbatches: int) -> float:
    """A closed form, with a fault."""
    if not (2 <= 2 * num_stages <= num_microbatches):
        raise ValueError(f"not for P = {num_stages} and M = {num_microbatches}")
    p, m = num_stages, num_microbatches
    return (p // 2 - 1) / (3 * m + p // 2 - 1)
