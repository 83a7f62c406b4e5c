"""Programs that ranks run in the tests of the world: one for each thing that a student's file may do."""

from __future__ import annotations

import torch
import torch.distributed as dist

from fixtures.world.context import RankContext


def nothing(ctx: RankContext) -> None:
    """Return at once."""


def rank_of(ctx: RankContext) -> int:
    return ctx.rank


def echo(ctx: RankContext, value: object) -> object:
    return value


def sum_of_ranks(ctx: RankContext) -> float:
    tensor = torch.tensor([float(ctx.rank)])
    dist.all_reduce(tensor)
    return float(tensor)


def raise_on_one(ctx: RankContext) -> int:
    if ctx.rank == 1:
        raise ValueError("only here")
    return ctx.rank
