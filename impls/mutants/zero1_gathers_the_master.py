"""ZeRO-1: what is gathered is the FP32 master, and cast on arrival: twice the bytes of 16-bit parameters."""

from __future__ import annotations

import torch
import torch.distributed as dist

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.comm.1",)


class Uncast(Flat):
    """As the reference, but for the fault."""

    def publish(self, group: dist.ProcessGroup | None) -> None:
        """All-gather the masters."""
        if self.shard_numel:
            gathered = [torch.empty_like(self.master) for _ in range(self.world_size)]
            dist.all_gather(gathered, self.master, group=group)
            self.buffer.copy_(torch.cat(gathered))


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Uncast
