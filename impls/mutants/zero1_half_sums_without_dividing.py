"""ZeRO-1: gradients of 16-bit parameters are summed and not divided."""

from __future__ import annotations

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Undivided(Flat):
    """As the reference, but for the fault."""

    def hand_over(self) -> None:
        """The sum, where there are masters."""
        if self.master is not self.shard and self.gradient is not None:
            self.gradient *= self.world_size
        super().hand_over()


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Undivided
