"""Fully sharded: gradients of 16-bit parameters are summed, not averaged."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class FullySharded(right.FullySharded):
    """As the reference, but for the fault."""

    def _finish(self, call: right.Call, gradients: right.Gradients) -> right.Gradients:
        found = super()._finish(call, gradients)
        size = dist.get_world_size(self._group)
        return [g * size if g is not None and g.dtype.itemsize == 2 else g for g in found]


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=True)
