"""Fully sharded: torch's clip_grad_norm_ on the shards: each rank clips by the norm of its own."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor, nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class Faulty(right.FullySharded):
    """As the reference, but for the fault."""

    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Clip by what this rank has of the norm."""
        return nn.utils.clip_grad_norm_(self.parameters(), max_norm)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return Faulty(module, group, reshard_after_forward, prefetch=True)
