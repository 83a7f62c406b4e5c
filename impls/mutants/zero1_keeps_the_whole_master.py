"""ZeRO-1: the FP32 master copy of 16-bit parameters is whole on every rank; only the moments are sharded."""

from __future__ import annotations

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.memory.1", "zero.saving.1")


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            if flat.master is not flat.shard and not hasattr(flat, "whole_master"):
                _widen(flat)


def _widen(flat: Flat) -> None:
    """Make this rank's masters views of a master of everything."""
    flat.whole_master = flat.buffer.float()
    start = flat.shard.storage_offset()
    flat.master = flat.whole_master[start : start + flat.shard_numel]
    for piece in flat.pieces:
        piece.master.data = flat.master[piece.within_shard]
