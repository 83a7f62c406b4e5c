"""The FP32 master shard travels and is cast on arrival."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from impls.reference import *  # noqa: F403
from impls.reference.calls import gather_parameters as gather

BREAKS = ("calls.all-gather",)


def gather_parameters(master_shard: Tensor, dtype: torch.dtype, group: dist.ProcessGroup | None = None) -> Tensor:
    """All ranks' shards in `dtype`."""
    return gather(master_shard, master_shard.dtype, group).to(dtype)
