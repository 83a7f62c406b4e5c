"""A rank program that times the reference's all-reduces by size. Imports no pytest."""

from __future__ import annotations

import time

import torch

from fixtures.world.context import RankContext
from impls.reference.collectives import ring_allreduce, tree_allreduce

ALGORITHMS = {"ring": ring_allreduce, "tree": tree_allreduce}


def all_reduce(ctx: RankContext, name: str, numel: int, number: int) -> float:
    """Seconds of one call on `numel` floats over the gloo mesh."""
    tensor, mesh = torch.ones(numel), ctx.mesh()
    ALGORITHMS[name](mesh, ctx.rank, ctx.world_size, tensor)
    start = time.perf_counter()
    for _ in range(number):
        ALGORITHMS[name](mesh, ctx.rank, ctx.world_size, tensor)
    return (time.perf_counter() - start) / number
