"""ZeRO-1: the inner optimizer keeps the learning rate that it was built with: no schedule reaches it."""

from __future__ import annotations

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _update(self, flat: Flat) -> None:
        group = self._param_group[flat]
        first = group.setdefault("first_rate", group["lr"])
        now, group["lr"] = group["lr"], first
        super()._update(flat)
        group["lr"] = now
