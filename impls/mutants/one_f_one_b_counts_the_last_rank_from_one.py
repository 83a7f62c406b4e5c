"""The forwards of the last rank are counted from 1, as in a helper of PyTorch."""

from __future__ import annotations

from impls.reference.pipeline import schedules as right

BREAKS = ("pipeline.1f1b.same-bubble",)


def one_f_one_b(num_stages: int, num_microbatches: int) -> list[list[str]]:
    """As the reference, but for the fault."""
    *others, last = [[str(action) for action in actions] for actions in right.one_f_one_b(num_stages, num_microbatches)]
    rank = num_stages - 1
    return [*others, [f"F{rank}.{int(text.split('.')[1]) + 1}" if text[0] == "F" else text for text in last]]
