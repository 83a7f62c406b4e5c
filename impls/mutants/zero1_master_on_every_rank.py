"""ZeRO-1: only the moments are sharded, and every rank keeps the FP32 master copy of all parameters."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("memory.zero1-5.5p", "zero.memory.1", "zero.saving.1")


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _end_step(self) -> None:
        super()._end_step()
        self._masters = [flat.buffer.float() for flat in self._flats if flat.master is not flat.shard]
