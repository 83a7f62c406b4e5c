"""Rank programs of `test_weighing`. Imports no pytest."""

from __future__ import annotations

import dataclasses
import resource
from typing import Any

import torch
import torch.distributed as dist

from fixtures import weighing
from fixtures.shapes import Shape
from fixtures.weighing import Recipe
from fixtures.world.context import RankContext


def weigh(
    ctx: RankContext, shape: dict[str, Any], recipe: dict[str, Any], world_size: int, rank: int = 0
) -> dict[str, int]:
    """Weigh on fake tensors, and be as before."""
    assert ctx.impl is not None
    before = resource.getrlimit(resource.RLIMIT_AS)
    weight = weighing.weigh(ctx.impl, Shape(**shape), Recipe(**recipe), world_size=world_size, rank=rank)
    assert not dist.is_initialized()
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert torch.ones(2).tolist() == [1.0, 1.0]
    return dataclasses.asdict(weight)


def peak_kilobytes(ctx: RankContext) -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
