"""What runs in the ranks when a collective is called on a group that is not the whole world. Imports no pytest."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import Tensor

from conformance.asks import asks_for
from conformance.collectives.programs import call
from conformance.groups import own_group
from fixtures.world.context import RankContext


def in_groups(ctx: RankContext, name: str, groups: list[list[int]], own: Tensor) -> dict[str, Any]:
    """One call on each group of ranks, all at the same time; nothing when the function takes no group."""
    if not asks_for(ctx.impl, name, "group"):
        return {"takes_group": False}
    with own_group(groups) as group:
        place = {"rank": dist.get_rank(group), "world_size": dist.get_world_size(group), "group": group}
        result = call(ctx, name, own.clone(), src=0, **place).clone()
    return {"takes_group": True, "result": result}
