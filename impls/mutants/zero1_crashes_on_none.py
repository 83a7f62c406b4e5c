"""ZeRO-1: every parameter that learns is expected to have a gradient."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _reduce_gradients(self) -> None:
        for flat in self._flats:
            for parameter in flat.parameters:
                parameter.grad += 0.0
        super()._reduce_gradients()
