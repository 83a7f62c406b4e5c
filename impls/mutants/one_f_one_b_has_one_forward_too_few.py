"""Every rank begins with one forward fewer than there are ranks behind it."""

from __future__ import annotations

BREAKS = ("pipeline.1f1b.same-bubble", "pipeline.bubble-growth.1f1b")


def one_f_one_b(num_stages: int, num_microbatches: int) -> list[list[str]]:
    """As the reference, but for the fault."""
    if num_stages < 1 or num_microbatches < 1:
        raise ValueError("at least one of each")
    return [
        _row(rank, min(max(num_stages - 2 - rank, 0), num_microbatches), num_microbatches) for rank in range(num_stages)
    ]


def _row(rank: int, ahead: int, count: int) -> list[str]:
    forwards, backwards = ([f"{kind}{rank}.{m}" for m in range(count)] for kind in "FB")
    turns = zip(forwards[ahead:], backwards[: count - ahead], strict=True)
    return [*forwards[:ahead], *[action for turn in turns for action in turn], *backwards[count - ahead :]]
