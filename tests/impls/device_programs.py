"""What the tests of devices run on ranks."""

from __future__ import annotations

import torch
from torch import Tensor

from fixtures.world.context import RankContext


def all_reduce_ones(ctx: RankContext) -> Tensor:
    """The implementation's sum of two ones from each rank."""
    assert ctx.impl is not None
    found: Tensor = ctx.impl.call("all_reduce", tensor=torch.ones(2))
    return found
