"""Fully sharded: parameters that were gathered once are never freed, and stale from the first step on."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right
from impls.reference.unit import FlatParameter

BREAKS = ("strategies.fsdp.traffic", "strategies.fsdp.cost")


class Kept(FlatParameter):
    """As the reference, but for the fault."""

    def start_gather(self) -> None:
        """Gather what has no memory yet."""
        if not self.full.untyped_storage().nbytes():
            super().start_gather()

    def release(self) -> None:
        """Wait, and keep the memory."""
        self.wait()


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    sharded = right.fully_shard(module, group, reshard_after_forward)
    for unit in sharded._units:
        for flat in unit.flats:
            flat.__class__ = Kept
    return sharded
