"""Fully sharded: shards of numel // N elements: what N does not divide at the end is never trained."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor, nn

from impls.reference import fsdp as right
from impls.reference.unit import FlatParameter

BREAKS = ("zero.equivalence",)


class Cut(FlatParameter):
    """As the reference, but for the fault."""

    def _reduce_scatter(self, flat: Tensor) -> Tensor:
        numel, world_size = sum(self._numels), self._mesh.world_size
        flat[world_size * (numel // world_size) : numel] = 0
        return super()._reduce_scatter(flat)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    sharded = right.fully_shard(module, group, reshard_after_forward)
    for unit in sharded._units:
        for flat in unit.flats:
            flat.__class__ = Cut
    return sharded
