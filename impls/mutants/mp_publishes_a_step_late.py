"""Parameters become the masters of the step before."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        before = self._in_fp32(parameter).clone()
        super()._update(parameter, group)
        parameter.copy_(before)
