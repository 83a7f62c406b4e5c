"""Fully sharded: the whole model is one unit, so that nothing is left of the saving while it computes."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("strategies.fsdp.traffic", "zero.sharded.3", "strategies.fsdp.memory")


class Around(nn.Module):
    """A module with a forward pass of its own and one child."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """That of the child."""
        return self.module(*args, **kwargs)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return right.fully_shard(Around(Around(module)), group, reshard_after_forward)
