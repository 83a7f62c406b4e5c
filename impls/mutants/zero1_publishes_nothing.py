"""ZeRO-1: each rank updates its shard and tells nobody: the others go on with old weights."""

from __future__ import annotations

import torch.distributed as dist

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence", "collectives.allgather.use")


class Private(Flat):
    """As the reference, but for the fault."""

    def publish(self, group: dist.ProcessGroup | None) -> None:
        """Keep the shard for oneself."""
        self.shard.copy_(self.master)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Private
