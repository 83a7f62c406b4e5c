"""ZeRO-1: there is a flat buffer for the first dtype only."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _pack(self, parameters: Iterable[Tensor]) -> list[list[Tensor]]:
        first = self.param_groups[0]["params"][0].dtype
        return super()._pack(parameter for parameter in parameters if parameter.dtype == first)
