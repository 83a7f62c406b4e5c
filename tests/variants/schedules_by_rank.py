"""Schedules as people write them one rank at a time: Megatron's counters, texts, closures, another order of the W."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any


def _check(ok: bool, rule: str) -> None:
    if not ok:
        raise ValueError(rule)


def gpipe(pp_size: int, num_micro_batches: int, rank: int) -> Iterator[str]:
    """The list of one rank, as texts; backwards in reverse, as in the paper's figure."""
    _check(min(pp_size, num_micro_batches) >= 1, "one stage and one microbatch at least")
    yield from (f"F{m}" for m in range(num_micro_batches))
    yield from (f"B{m}" for m in reversed(range(num_micro_batches)))


def schedule_1f1b(num_stages: int, num_microbatches: int) -> dict[int, list[Any]]:
    """A dict by rank, with None where a rank waits, and counters as in Megatron-LM."""
    _check(min(num_stages, num_microbatches) >= 1, "one stage and one microbatch at least")
    table: dict[int, list[Any]] = {}
    for stage in range(num_stages):
        warm_up = min(num_stages - stage - 1, num_microbatches)
        row: list[Any] = [None] * stage
        row += [{"op": "forward", "stage": stage, "mb": mb} for mb in range(warm_up)]
        forward, backward = warm_up, 0
        while backward < num_microbatches:
            if forward < num_microbatches:
                row.append({"op": "forward", "stage": stage, "mb": forward})
                forward += 1
            row.append({"op": "backward", "stage": stage, "mb": backward})
            backward += 1
        table[stage] = row
    return table


def zero_bubble_h1(num_stages: int, num_microbatches: int) -> list[Callable[[], list[tuple[str, int, int]]]]:
    """ZB-H1 as closures, with the paper's names (B is the gradient of the input), and the newest W done first."""
    _check(min(num_stages, num_microbatches) >= 1, "one stage and one microbatch at least")
    return [lambda rank=rank: _newest_first(num_stages, num_microbatches, rank) for rank in range(num_stages)]  # type: ignore[misc]


def _newest_first(n: int, m: int, rank: int) -> list[tuple[str, int, int]]:
    row: list[tuple[str, int, int]] = []
    forwards, waiting = deque(range(m)), deque[int]()
    for _ in range(min(n - 1 - rank, m)):
        row.append(("F", rank, forwards.popleft()))
    for mb in range(m):
        if forwards:
            row.append(("F", rank, forwards.popleft()))
        row.append(("B", rank, mb))
        waiting.append(mb)
        if len(waiting) > rank or mb >= m - (n - 1 - rank):  # as many put off as there are ranks before it
            row.append(("W", rank, waiting.pop()))
    row += [("W", rank, waiting.popleft()) for _ in range(len(waiting))]
    return row


def bubble_fraction(num_stages: int, num_microbatches: int) -> Fraction:
    """A fraction that is one."""
    _check(min(num_stages, num_microbatches) >= 1, "one stage and one microbatch at least")
    return Fraction(num_stages - 1, num_microbatches + num_stages - 1)


def bubble_zb(p: int, m: int) -> Any:
    """A number of numpy's."""
    import numpy as np

    _check(1 <= p <= m, "M >= P >= 1")
    return np.float64(p - 1) / np.float64(3 * m + p - 1)
