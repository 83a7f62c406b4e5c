"""ZeRO-1: the last gathered parameters stay in a buffer of their own, beside the parameters."""

from __future__ import annotations

from typing import Any

from impls.reference import zero1 as right

BREAKS = ("zero.sharded.1", "zero.memory.1", "zero.saving.1")


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def step(self, closure: Any = None) -> Any:
        """As the reference, but for the fault."""
        loss = super().step(closure)
        self._gathered = [flat.buffer.clone() for flat in self._flats]
        return loss
