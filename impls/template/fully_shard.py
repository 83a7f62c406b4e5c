"""ZeRO-3, also known as fully sharded data parallelism (FSDP)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def fully_shard(
    module: nn.Module,
    world_size: int,
    rank: int,
    group: torch.distributed.ProcessGroup | None = None,
    reshard_after_forward: bool = True,
) -> Any:
    """Shard `module`: parameters are gathered for each layer's forward and backward, and freed after each.

    Returns a wrapper that is called like `module`; its ``parameters()`` are this rank's shards, and after backward
    their ``.grad`` is this rank's share of the mean gradient. Or do it in place and return None.
    """
    raise NotImplementedError
