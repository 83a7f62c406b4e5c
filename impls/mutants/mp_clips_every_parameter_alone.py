"""Each parameter's gradient is clipped by its own norm."""

from __future__ import annotations

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    _max_norm = float("inf")

    def clip_grad_norm_(self, max_norm: float, sharded: bool = False) -> Tensor:
        """Clip later."""
        self._max_norm = max_norm
        return super().clip_grad_norm_(float("inf"), sharded)

    def _true_gradient(self, grad: Tensor) -> Tensor:
        true = grad.to(right._wide(grad.dtype)) / self.loss_scale
        return true * (self._max_norm / (true.norm() + 1e-6)).clamp(max=1.0)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget."""
        super().zero_grad(set_to_none)
        self._max_norm = float("inf")
