"""Where to cut a chain of layers into stages so that the costliest stage costs as little as possible.

All ranks of a pipeline wait for the slowest stage in every microbatch, so what is to be equal is the time per stage:
not layers, and not parameters (a large embedding is a look-up, and costs next to nothing). Exact, by two steps:

1. The least limit under which filling stages greedily needs no more than N of them. Whatever limit fails must rise at
   least until one more layer fits into one of the stages: it goes from one such value to the next.
2. Of the ways to cut under that limit, the one with the least sum of squares: the others are to be even, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Real

from impls.words import number_of


def partition(costs: Sequence[float | Fraction], num_stages: int) -> list[slice]:
    """The layers of each stage, in order: ``layers[found[0]]`` are those of the first. None is empty.

    `costs`: what each layer costs, of any unit; compared exactly, floats too. ValueError for negative or infinite
    costs, and unless there are at least as many layers as stages.
    """
    if not 1 <= num_stages <= len(costs):
        raise ValueError(
            f"{number_of(len(costs), 'layer')} cannot be cut into {number_of(num_stages, 'stage')} of at least "
            "one layer each"
        )
    whole = _as_integers(costs)
    sums = [0, *itertools.accumulate(whole)]
    cuts = _most_even(sums, num_stages, _least_limit(whole, num_stages))
    return [slice(begin, end) for begin, end in itertools.pairwise(cuts)]


def _as_integers(costs: Sequence[float | Fraction]) -> list[int]:
    """The costs times a common denominator."""
    for layer, cost in enumerate(costs):
        if not isinstance(cost, Real) or not math.isfinite(cost) or cost < 0:
            raise ValueError(f"layer {layer} costs {cost}: a finite number of at least 0 was expected")
    exact = [Fraction(cost) for cost in costs]
    unit = math.lcm(*(cost.denominator for cost in exact))
    return [int(cost * unit) for cost in exact]


def _least_limit(costs: Sequence[int], num_stages: int) -> int:
    """The cost of the costliest stage in the best partition."""
    limit = max(*costs, -(-sum(costs) // num_stages))
    while True:
        num_filled, total, next_limit = 1, 0, sum(costs)
        for cost in costs:
            if total + cost > limit:
                next_limit = min(next_limit, total + cost)
                num_filled, total = num_filled + 1, 0
            total += cost
        if num_filled <= num_stages:
            return limit
        limit = next_limit


def _most_even(sums: Sequence[int], num_stages: int, limit: int) -> list[int]:
    """The ends of all stages, with the 0 in front, by dynamic programming over the end of the last stage so far.

    `sums[i]` is the cost of the first i layers.
    """
    best: dict[int, tuple[int, list[int]]] = {0: (0, [0])}  # end -> squares, and the ends up to there
    for _ in range(num_stages):
        found: dict[int, tuple[int, list[int]]] = {}
        for begin, (squares, cuts) in best.items():
            for end in range(begin + 1, len(sums)):
                cost = sums[end] - sums[begin]
                if cost > limit:
                    break
                if end not in found or squares + cost**2 < found[end][0]:
                    found[end] = (squares + cost**2, [*cuts, end])
        best = found
    return best[len(sums) - 1][1]
