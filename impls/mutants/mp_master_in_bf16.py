"""The master copy has no more digits than bfloat16."""

from __future__ import annotations

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _release(self, twin: Tensor) -> None:
        twin.copy_(twin.bfloat16())
        super()._release(twin)
