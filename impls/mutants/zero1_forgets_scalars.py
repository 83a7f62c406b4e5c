"""ZeRO-1: a parameter without dimensions is not trained."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _pack(self, parameters: Iterable[Tensor]) -> list[list[Tensor]]:
        return super()._pack(parameter for parameter in parameters if parameter.dim())
