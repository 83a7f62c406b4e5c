"""ZeRO-1: the clipping norm is that of the first flat buffer only: of one parameter group."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Leave the other buffers out."""
        self._reduce_gradients()
        gradients = [flat.gradient for flat in self._flats if flat.gradient is not None]
        square = gradients[0].double().square().sum()
        dist.all_reduce(square, group=self._group)
        norm = square.sqrt()
        for gradient in gradients:
            gradient *= (max_norm / (norm + 1e-6)).clamp(max=1.0)
        return norm
