"""ZeRO-1: the options of the first parameter group hold for all of them."""

from __future__ import annotations

from typing import Any

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        return super()._options(self.param_groups[0])
