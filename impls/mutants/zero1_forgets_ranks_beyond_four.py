"""ZeRO-1: shards are published by four ranks at most."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class OfFour(right.Flat):
    """As the reference, but for the fault."""

    def hand_over(self) -> None:
        """Nothing to do for ranks 4 to 7."""
        if self.shard.storage_offset() < 4 * self.shard_numel:
            super().hand_over()


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = OfFour
