"""ZeRO-2: each rank clips by the norm of its own shard of the gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from impls.reference import zero2 as right

BREAKS = ("zero.equivalence",)


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Clip by what this rank has of the norm."""
        self._reduce_gradients()
        gradients = [flat.gradient for flat in self._flats if flat.gradient is not None]
        norm = torch.stack([gradient.double().square().sum() for gradient in gradients]).sum().sqrt()
        for gradient in gradients:
            gradient *= (max_norm / (norm + 1e-6)).clamp(max=1.0)
        return norm
