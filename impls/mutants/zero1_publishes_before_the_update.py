"""ZeRO-1: the parameters are all-gathered before the shards are updated."""

from __future__ import annotations

import torch.distributed as dist

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Early(Flat):
    """As the reference, but for the fault."""

    def hand_over(self) -> None:
        """Gather, and then comes the update."""
        super().publish(None)
        super().hand_over()

    def publish(self, group: dist.ProcessGroup | None) -> None:
        """That was done."""
        self.shard.copy_(self.master)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Early
