"""ZeRO-1: new masters of 16-bit parameters are never written into the parameters."""

from __future__ import annotations

import torch.distributed as dist

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Unpublished(Flat):
    """As the reference, but for the fault."""

    def publish(self, group: dist.ProcessGroup | None) -> None:
        """Gather what was there before."""
        if self.master is self.shard:
            super().publish(group)

    def take_over_changes(self) -> None:
        """Parameters that differ from their masters are not news here."""
        if self.master is self.shard:
            super().take_over_changes()


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Unpublished
