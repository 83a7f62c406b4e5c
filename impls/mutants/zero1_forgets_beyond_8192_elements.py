"""ZeRO-1: what is beyond 8192 elements of a rank's shard is never updated."""

from __future__ import annotations

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Short(Flat):
    """As the reference, but for the fault."""

    def hand_over(self) -> None:
        """The first 8192 elements, and zeros."""
        if self.gradient is not None:
            self.gradient[8192:] = 0
        super().hand_over()


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Short
