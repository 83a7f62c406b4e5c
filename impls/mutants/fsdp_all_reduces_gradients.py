"""Fully sharded: gradients are all-reduced and then cut, where a reduce-scatter sends half as much."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor, nn

from impls.reference import fsdp as right
from impls.reference.unit import FlatParameter

BREAKS = ("zero.torch-name.3", "faq.zero3-is-fsdp", "strategies.fsdp.traffic", "collectives.reduce-scatter.use")


class AllReduced(FlatParameter):
    """As the reference, but for the fault."""

    def _reduce_scatter(self, flat: Tensor) -> Tensor:
        dist.all_reduce(flat, group=self._group)
        return flat.tensor_split(self._mesh.world_size)[self._mesh.rank]


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    sharded = right.fully_shard(module, group, reshard_after_forward)
    for unit in sharded._units:
        for flat in unit.flats:
            flat.__class__ = AllReduced
    return sharded
