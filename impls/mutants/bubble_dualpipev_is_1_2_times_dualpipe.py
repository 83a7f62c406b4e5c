"""DualPipe's true value times a fixed 1.2."""

from __future__ import annotations

BREAKS = ("pipeline.simulators.dualpipev",)


def bubble_dualpipev(num_stages: int, num_microbatches: int) -> float:
    """A closed form, with a fault."""
    if not (2 <= 2 * num_stages <= num_microbatches):
        raise ValueError(f"not for P = {num_stages} and M = {num_microbatches}")
    p, m = num_stages, num_microbatches
    return 1.2 * (p - 2) / (3 * m + p - 2)
