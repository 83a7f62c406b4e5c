"""The norm is that of the scaled gradients, so that clipping shrinks far too much."""

from __future__ import annotations

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def clip_grad_norm_(self, max_norm: float, sharded: bool = False) -> Tensor:
        """Clip."""
        return super().clip_grad_norm_(max_norm / self.loss_scale, sharded)
