"""What lists of actions say beyond their order: who has which stage, and whether B is meant as the papers mean it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from impls.reference.pipeline.actions import Action, Kind
from impls.reference.pipeline.placement import Placement


def _parts(lists: Sequence[Sequence[Action]]) -> Iterator[tuple[int, Action]]:
    return ((rank, part) for rank, actions in enumerate(lists) for action in actions for part in action.parts)


def as_in_the_papers(lists: list[list[Action]]) -> list[list[Action]]:
    """Where every B has a W and there is no I, B is the papers' name for the gradient of the input."""
    places: dict[Kind, Counter[tuple[int, int]]] = {kind: Counter() for kind in Kind}
    for _, part in _parts(lists):
        places[part.kind][part.stage, part.microbatch] += 1
    if places[Kind.INPUT] or places[Kind.BACKWARD] != places[Kind.WEIGHT]:
        return lists
    return [[_split(action) for action in actions] for actions in lists]


def _split(action: Action) -> Action:
    if action.kind is not Kind.BACKWARD:
        return action
    return Action(Kind.INPUT, action.stage, action.microbatch, action.beside)


def placement_of(lists: Sequence[Sequence[Action]], num_microbatches: int) -> Placement:
    """Who has which stage for which microbatches: the rank of its forward, or of whatever it does there first."""
    holders: dict[tuple[int, int], int] = {}
    by_stage: dict[int, int] = {}
    for rank, part in sorted(_parts(lists), key=lambda each: each[1].kind is not Kind.FORWARD):
        holders.setdefault((part.stage, part.microbatch), rank)
        by_stage.setdefault(part.stage, rank)
    stages = range(max(by_stage) + 1)
    ways = [
        tuple(holders.get((stage, microbatch), by_stage.get(stage, 0)) for stage in stages)
        for microbatch in range(num_microbatches)
    ]
    for num_directions in (1, 2, num_microbatches):
        length, rest = divmod(num_microbatches, num_directions)
        starts = ways[::length] if not rest else []
        if starts and ways == [way for way in starts for _ in range(length)]:
            return Placement(tuple(starts))
    raise AssertionError("a direction for each microbatch fits every schedule")
