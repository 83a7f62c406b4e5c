"""ZeRO-1: a parameter group that is added after the first step is never laid out."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        if not getattr(self, "_has_stepped", False):
            super()._lay_out()

    def _end_step(self) -> None:
        super()._end_step()
        self._has_stepped = True
