"""Every other microbatch has its last stage on rank 0, which holds a second copy for that."""

from __future__ import annotations

BREAKS = ("pipeline.copies.1f1b", "strategies.pipeline.partition")


def one_f_one_b(num_stages: int, num_microbatches: int) -> list[list[tuple[str, int, int]]]:
    """One microbatch at a time, each stage on its rank but for the fault."""
    if num_stages < 1 or num_microbatches < 1:
        raise ValueError("at least one of each")
    rows: list[list[tuple[str, int, int]]] = [[] for _ in range(num_stages)]
    for m in range(num_microbatches):
        ranks = [*range(num_stages - 1), (num_stages - 1) * (m % 2)]
        for stage, rank in enumerate(ranks):
            rows[rank].append(("F", stage, m))
        for stage, rank in reversed(list(enumerate(ranks))):
            rows[rank].append(("B", stage, m))
    return rows
