"""Fully sharded: sharding puts the module in training mode, whatever it was in."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return right.fully_shard(module.train(), group, reshard_after_forward)
