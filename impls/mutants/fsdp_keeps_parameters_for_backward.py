"""Fully sharded: parameters stay whole from forward to backward, whatever is asked for."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = (
    "zero.torch-name.3",
    "faq.zero3-is-fsdp",
    "strategies.fsdp.link",
    "strategies.fsdp.cost",
    "zero.sharded.3",
    "strategies.fsdp.memory",
)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return right.fully_shard(module, group, reshard_after_forward=False)
