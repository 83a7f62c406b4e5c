"""Fully sharded: nothing but the first argument reaches the module."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class Faulty(right.FullySharded):
    """As the reference, but for the fault."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The pass of the first argument."""
        return super().forward(*args[:1])


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return Faulty(module, group, reshard_after_forward, prefetch=True)
