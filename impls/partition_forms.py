"""The stages that a chain of layers was cut into, however they are written: as the numbers of each stage's layers.

    [slice(0, 2), slice(2, 5)]     [range(0, 2), range(2, 5)]     [[0, 1], [2, 3, 4]]     [(0, 2), (2, 5)]
    [0, 2, 5]                      [2]                            [2, 3]
    where stages begin and end     where the chain is cut         how many layers a stage has

The second line's flat lists of integers go by their length: one more than there are stages, one less, or as many. What
is read need not be a right partition: a layer that is dropped or in two stages stays so.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from impls.normalise import UnusableResult

Layers = list[list[int]]


def layers_of(found: Any, num_layers: int, num_stages: int, name: str = "partition") -> Layers:
    """For each stage the numbers of its layers, in the order given. `UnusableResult` for what cannot be read."""
    stages = _entries(found, name)
    if stages and all(_is_whole(entry) for entry in stages):
        return _flat([operator.index(entry) for entry in stages], num_layers, num_stages, name)
    read = [_one(stage, num_layers, name) for stage in stages]
    between = _between(stages, read)
    return between if between is not None and not is_cut(read, num_layers) and is_cut(between, num_layers) else read


def is_cut(stages: Sequence[Sequence[int]], num_layers: int) -> bool:
    """Whether every layer is in one stage, in order, and no stage is empty."""
    return all(stages) and list(itertools.chain.from_iterable(stages)) == list(range(num_layers))


def _entries(found: Any, name: str) -> list[Any]:
    if isinstance(found, Mapping):
        found = [found[key] for key in sorted(found)]
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise UnusableResult(f"{name} returned {_told(found)}: for each stage a slice, a range or a list was expected")
    return list(found)


def _flat(numbers: list[int], num_layers: int, num_stages: int, name: str) -> Layers:
    if len(numbers) == num_stages + 1:
        ends = numbers
    elif len(numbers) == num_stages - 1:
        ends = [0, *numbers, num_layers]
    elif len(numbers) == num_stages:
        ends = [0, *itertools.accumulate(numbers)]
    else:
        raise UnusableResult(
            f"{name} returned {len(numbers)} integers for {num_stages} stages: a slice, a range or a list of layers "
            "for each stage was expected"
        )
    return [list(range(begin, end)) for begin, end in itertools.pairwise(ends)]


def _one(stage: Any, num_layers: int, name: str) -> list[int]:
    if isinstance(stage, slice):
        return list(range(*stage.indices(num_layers)))
    if isinstance(stage, Iterable) and not isinstance(stage, (str, bytes)):
        layers = list(stage)
        if all(_is_whole(layer) for layer in layers):
            return [operator.index(layer) for layer in layers]
    raise UnusableResult(
        f"{name} returned {_told(stage)} for a stage: a slice, a range or a list of layers is expected"
    )


def _between(stages: list[Any], read: Layers) -> Layers | None:
    """The stages read as pairs of begin and end, where each is a pair."""
    pairs = all(isinstance(stage, (tuple, list)) and len(stage) == 2 for stage in stages)
    return [list(range(*pair)) for pair in read] if pairs else None


def _is_whole(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def _told(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
