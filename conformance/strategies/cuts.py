"""What is wrong with a way to cut a chain of layers into stages, and how cheap the costliest stage could be."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

from impls.words import number_of

Stages = Sequence[Sequence[int]]  # for each stage the numbers of its layers


def fault_in(stages: Stages, num_layers: int, num_stages: int) -> str:
    """Why these are not contiguous disjoint stages of all layers, in order and none empty; empty where they are."""
    if len(stages) != num_stages:
        return f"{number_of(len(stages), 'stage')} instead of {num_stages}"
    seen: dict[int, int] = {}
    for number, layers in enumerate(stages):
        if not layers:
            return f"stage {number} is empty"
        for layer in layers:
            if not 0 <= layer < num_layers:
                return f"stage {number} has a layer {layer}, and there are layers 0 to {num_layers - 1}"
            if layer in seen:
                return f"layer {layer} is in stages {seen[layer]} and {number}"
            seen[layer] = number
        if list(layers) != list(range(layers[0], layers[0] + len(layers))):
            return f"the layers of stage {number}, {_told(layers)}, are not contiguous"
    if missing := sorted(set(range(num_layers)) - set(seen)):
        return f"layer {missing[0]} is in no stage"
    order = [layers[0] for layers in stages]
    return "" if order == sorted(order) else f"the stages are not in order: they begin with layers {_told(order)}"


def costs_of(stages: Stages, costs: Sequence[float | Fraction]) -> list[Fraction]:
    """What each stage costs, exactly."""
    exact = [Fraction(cost) for cost in costs]
    return [sum((exact[layer] for layer in layers), Fraction(0)) for layers in stages]


def least_bottleneck(costs: Sequence[float | Fraction], num_stages: int) -> Fraction:
    """The cost of the costliest stage in the best of all ways to cut, by dynamic programming over the last cut."""
    sums = [Fraction(0), *itertools.accumulate(Fraction(cost) for cost in costs)]
    best: list[Fraction | None] = [Fraction(0), *[None] * len(costs)]  # of the first i layers in the stages so far
    for _ in range(num_stages):
        reached: list[Fraction | None] = [None] * len(best)
        for end in range(1, len(best)):
            before = [(best[begin], begin) for begin in range(end)]
            found = [max(cost, sums[end] - sums[begin]) for cost, begin in before if cost is not None]
            reached[end] = min(found, default=None)
        best = reached
    assert best[-1] is not None, "fewer layers than stages"
    return best[-1]


def told(stages: Stages) -> str:
    """``0-2 | 3 | 4-7``."""
    return " | ".join(map(_told, stages)) or "no stages"


def _told(layers: Sequence[int]) -> str:
    if len(layers) > 2 and list(layers) == list(range(layers[0], layers[-1] + 1)):
        return f"{layers[0]}-{layers[-1]}"
    return " ".join(map(str, layers)) or "nothing"
