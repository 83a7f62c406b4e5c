"""Fully sharded: a unit is gathered for backward, freed, and gathered for backward again."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("strategies.fsdp.traffic", "strategies.fsdp.link")


class FullySharded(right.FullySharded):
    """As the reference, but for the fault."""

    def _enter(self, call: right.Call) -> None:
        if not call.unit.in_backward:
            call.unit.start_gather()
            call.unit.release()
        super()._enter(call)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=False)
