"""ZeRO-1: the master takes over the rounded parameter after each step: small updates are lost."""

from __future__ import annotations

import torch.distributed as dist

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Rounding(Flat):
    """As the reference, but for the fault."""

    def publish(self, group: dist.ProcessGroup | None) -> None:
        """And back."""
        super().publish(group)
        self.master.copy_(self.shard)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Rounding
