"""Fully sharded: units are freed after forward and gathered again, also where they were to be kept."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("strategies.fsdp.link",)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return right.fully_shard(module, group, reshard_after_forward=True)
