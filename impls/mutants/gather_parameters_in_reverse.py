"""The shards are joined from the last rank to the first."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from impls.reference import *  # noqa: F403

BREAKS = ("calls.all-gather",)


def gather_parameters(master_shard: Tensor, dtype: torch.dtype, group: dist.ProcessGroup | None = None) -> Tensor:
    """All ranks' shards in `dtype`."""
    shard = master_shard.flatten().to(dtype)
    parts = [torch.empty_like(shard) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, shard, group=group)
    return torch.cat(parts[::-1])
