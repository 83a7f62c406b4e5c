"""ZeRO-1: parameters travel in float32, doubles too."""

from __future__ import annotations

import torch.distributed as dist

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Rounded(Flat):
    """As the reference, but for the fault."""

    def publish(self, group: dist.ProcessGroup | None) -> None:
        """Round the shard before it is gathered."""
        self.shard.copy_(self.shard.float())
        super().publish(group)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Rounded
