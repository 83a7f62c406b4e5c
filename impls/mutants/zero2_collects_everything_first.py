"""ZeRO-2: all gradients are collected before the first is reduced, however small the buckets shall be."""

from __future__ import annotations

import math
from collections.abc import Iterable

from torch import Tensor

from impls.reference import zero2 as right

BREAKS = ("zero.memory.2",)


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _pack(self, parameters: Iterable[Tensor]) -> list[list[Tensor]]:
        self._bucket_cap_bytes = math.inf
        return super()._pack(parameters)
