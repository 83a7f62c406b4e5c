"""The optimizer is given the scaled gradients."""

from __future__ import annotations

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _true_gradient(self, grad: Tensor) -> Tensor:
        true = grad.to(right._wide(grad.dtype))
        return true if self._clip is None else true * self._clip
