"""GPipe as clock cycles without kinds: in each cycle the (microbatch, stage) pairs of forward passes.

So torchgpipe has it (Kim et al. 2020, section 3.2). The backward passes are those of autograd: the same pairs, last
cycle first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def are_cycles(items: Sequence[Any]) -> bool:
    """Whether these are lists of pairs of numbers, and nothing says what is done."""
    pairs = [pair for item in items if isinstance(item, list | tuple | set) for pair in item]
    listed = all(isinstance(item, list | tuple | set) for item in items)
    return bool(pairs) and listed and all(map(_is_pair, pairs))


def completed(items: Sequence[Any]) -> list[list[tuple[str, int, int]]]:
    """For each clock tick the actions, as (kind, stage, microbatch): the forward passes, then as many ticks back."""
    forward = [[("F", stage, microbatch) for microbatch, stage in item] for item in items]
    backward = [[("B", stage, microbatch) for _, stage, microbatch in tick] for tick in reversed(forward)]
    return forward + backward


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == 2 and all(hasattr(each, "__index__") for each in pair)
