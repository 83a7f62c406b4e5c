"""ZeRO-1: the inner optimizer is made anew for every step, and its state is lost."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _end_step(self) -> None:
        super()._end_step()
        for inner in self._inner.values():
            inner.state.clear()
