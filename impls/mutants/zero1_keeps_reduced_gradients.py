"""ZeRO-1: this rank's shard of the mean gradient stays after the step, beside the whole gradients."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("zero.memory.1", "zero.saving.1")


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _end_step(self) -> None:
        self._reduced = [flat.gradient for flat in self._flats]
        super()._end_step()
