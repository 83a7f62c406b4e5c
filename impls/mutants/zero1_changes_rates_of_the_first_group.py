"""ZeRO-1: a scheduler reaches the first parameter group; later ones keep the rate that they began with."""

from __future__ import annotations

from typing import Any

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        first = self.__dict__.setdefault("_first", {}).setdefault(id(group), group["lr"])
        return super()._options(group if group is self.param_groups[0] else {**group, "lr": first})
