"""Fully sharded: a forward pass begins by gathering all units, so that the whole model lies in memory."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = (
    "zero.torch-name.3",
    "faq.zero3-is-fsdp",
    "strategies.fsdp.traffic",
    "zero.sharded.3",
    "strategies.fsdp.memory",
)


class FullySharded(right.FullySharded):
    """As the reference, but for the fault."""

    def _start_pass(self) -> None:
        super()._start_pass()
        for unit in self._units:
            unit.start_gather()


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=False)
