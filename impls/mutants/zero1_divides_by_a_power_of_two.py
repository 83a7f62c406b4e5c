"""ZeRO-1: on 5, 6 and 7 ranks sums are divided by 8: the number of ranks is rounded up."""

from __future__ import annotations

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class PowerOfTwo(Flat):
    """As the reference, but for the fault."""

    def hand_over(self) -> None:
        """Undo the division, and divide by 8."""
        if self.world_size in (5, 6, 7) and self.gradient is not None:
            self.gradient *= self.world_size / 8
        super().hand_over()


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = PowerOfTwo
