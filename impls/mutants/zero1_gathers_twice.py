"""ZeRO-1: the new parameters are gathered after the step, and again before the next reduction."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("zero.comm.1",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _reduce_gradients(self) -> None:
        for flat in self._flats:
            flat.publish(self._group)
        super()._reduce_gradients()
