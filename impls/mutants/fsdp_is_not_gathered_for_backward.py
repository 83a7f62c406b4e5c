"""Fully sharded: backward gives a unit its memory again and does not gather: its weights are zeros there."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right
from impls.reference.unit import FlatParameter

BREAKS = ("zero.equivalence",)


class Empty(FlatParameter):
    """As the reference, but for the fault."""

    def start_gather(self) -> None:
        """Gather in forward only."""
        if torch._C._current_graph_task_id() == -1:
            super().start_gather()
        else:
            self.whole.untyped_storage().resize_(self.whole.nbytes)
            self.whole.data.zero_()


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    sharded = right.fully_shard(module, group, reshard_after_forward)
    for unit in sharded._units:
        for flat in unit.flats:
            flat.__class__ = Empty
    return sharded
