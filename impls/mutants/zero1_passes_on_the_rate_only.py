"""ZeRO-1: of the options that change between steps the learning rate alone reaches the inner optimizer."""

from __future__ import annotations

from typing import Any

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        first = self.__dict__.setdefault("_first", {}).setdefault(id(group), dict(group))
        return super()._options({**first, "lr": group["lr"]})
