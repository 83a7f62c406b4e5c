"""Schedules as one list of (cycle, stage, microbatch, phase), found by going through time: who can do something, does.

Bubbles are counted in the same list, and no closed form is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple


class Slot(NamedTuple):
    """As the cheatsheet's lesson has them."""

    cycle: int
    stage: int
    microbatch: int
    phase: str


def _check(num_stages: int, num_microbatches: int) -> None:
    if num_stages < 1 or num_microbatches < 1:
        raise ValueError(f"{num_stages} stages, {num_microbatches} microbatches")


def _greedy(n: int, m: int, allowed: Callable[[int, int, int], bool]) -> Iterator[Slot]:
    """A backward before a forward, which takes half as long; forwards where `allowed(stage, forwards, backwards)`."""
    done = [[0, 0] for _ in range(n)]
    ready = {("fwd", 0, mb): 0 for mb in range(m)}
    free, cycle = [0] * n, 0
    while any(backwards < m for _, backwards in done):
        for stage in range(n):
            forwards, backwards = done[stage]
            if free[stage] > cycle:
                continue
            if ready.get(("bwd", stage, backwards), cycle + 1) <= cycle and backwards < forwards:
                yield Slot(cycle, stage, backwards, "bwd")
                done[stage][1] += 1
                free[stage] = cycle + 2
                ready["bwd", stage - 1, backwards] = free[stage]
            elif ready.get(("fwd", stage, forwards), cycle + 1) <= cycle and allowed(stage, forwards, backwards):
                yield Slot(cycle, stage, forwards, "fwd")
                done[stage][0] += 1
                free[stage] = cycle + 1
                ready["fwd" if stage < n - 1 else "bwd", min(stage + 1, n - 1), forwards] = free[stage]
        cycle += 1


def gpipe(n_stages: int, n_micro: int) -> Iterator[Slot]:
    """A generator; backwards begin when the last stage has done all forwards."""
    _check(n_stages, n_micro)
    for mb in range(n_micro):
        yield from (Slot(mb + stage, stage, mb, "fwd") for stage in range(n_stages))
    turn = n_micro + n_stages - 1
    for mb in range(n_micro):
        yield from (Slot(turn + 2 * (n_stages - 1 - stage + mb), stage, mb, "bwd") for stage in range(n_stages))


def one_f_one_b(n_stages: int, n_micro: int) -> list[tuple[int, int, int, str]]:
    """No more than as many in flight as there are stages from this one on."""
    _check(n_stages, n_micro)
    return [tuple(slot) for slot in _greedy(n_stages, n_micro, lambda s, f, b: f - b < n_stages - s)]


def bubble_1f1b(n_stages: int, n_micro: int) -> float:
    """Counted."""
    slots = one_f_one_b(n_stages, n_micro)
    lasts = {"fwd": 1, "bwd": 2}
    end = max(cycle + lasts[phase] for cycle, _, _, phase in slots)
    return 1 - 3 * n_micro / end
