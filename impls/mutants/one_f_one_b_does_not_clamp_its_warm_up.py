"""The warm-up of a rank counts the ranks behind it even where there are fewer microbatches."""

from __future__ import annotations

BREAKS = ("pipeline.1f1b.same-bubble", "pipeline.1f1b.memory")


def one_f_one_b(num_stages: int, num_microbatches: int) -> list[list[tuple[str, int, int]]]:
    """As the reference, but for the fault."""
    if num_stages < 1 or num_microbatches < 1:
        raise ValueError("at least one of each")
    return [_row(rank, num_stages - 1 - rank, num_microbatches) for rank in range(num_stages)]


def _row(rank: int, ahead: int, count: int) -> list[tuple[str, int, int]]:
    row = [("F", rank, m) for m in range(ahead)]
    for m in range(count - ahead):
        row += [("F", rank, ahead + m), ("B", rank, m)]
    return row + [("B", rank, m) for m in range(max(count - ahead, 0), count)]
