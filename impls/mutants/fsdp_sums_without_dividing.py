"""Fully sharded: gradients are summed over the ranks and never divided."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right
from impls.reference.unit import FlatParameter, Gradients

BREAKS = ("zero.equivalence",)


class Summed(FlatParameter):
    """As the reference, but for the fault."""

    def reduce(self, gradients: Gradients) -> Gradients:
        """The sum, not the mean."""
        return [part if part is None else part * self._mesh.world_size for part in super().reduce(gradients)]


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    sharded = right.fully_shard(module, group, reshard_after_forward)
    for unit in sharded._units:
        for flat in unit.flats:
            flat.__class__ = Summed
    return sharded
