"""Fully sharded: every forward pass begins with rank 0's buffers."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class Faulty(right.FullySharded):
    """As the reference, but for the fault."""

    def _start_pass(self) -> None:
        super()._start_pass()
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0, group=self._group)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return Faulty(module, group, reshard_after_forward, prefetch=True)
