"""A rank program that has an implementation cut chains of layers into stages. Imports no pytest."""

from __future__ import annotations

from typing import Any

from fixtures.world.context import RankContext
from impls.partition_forms import Layers, layers_of

Cost = int | float


def cut(ctx: RankContext, costs: list[Cost], num_stages: int) -> Layers:
    """The layers of each stage by the implementation's `partition`."""
    assert ctx.impl is not None
    found = ctx.impl.call("partition", costs=list(costs), num_stages=num_stages)
    return layers_of(found, len(costs), num_stages)


def refused(ctx: RankContext, cases: list[tuple[list[Cost], int]]) -> list[Any]:
    """For each case True where `partition` raises ValueError, else what it returned, as text."""
    found: list[Any] = []
    for costs, num_stages in cases:
        try:
            assert ctx.impl is not None
            found.append(repr(ctx.impl.call("partition", costs=list(costs), num_stages=num_stages)))
        except ValueError:
            found.append(True)
    return found
