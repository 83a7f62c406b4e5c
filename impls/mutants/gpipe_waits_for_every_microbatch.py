"""A microbatch comes back before the next one enters: nothing is pipelined."""

from __future__ import annotations

BREAKS = ("pipeline.gpipe.bubble", "strategies.pipeline.cost")


def gpipe(num_stages: int, num_microbatches: int) -> list[list[tuple[str, int, int]]]:
    """One microbatch at a time."""
    if num_stages < 1 or num_microbatches < 1:
        raise ValueError("at least one of each")
    return [[(kind, rank, m) for m in range(num_microbatches) for kind in "FB"] for rank in range(num_stages)]
