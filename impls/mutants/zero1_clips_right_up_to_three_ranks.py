"""ZeRO-1: the clipping norm is of this rank and its two neighbours: right on up to three ranks."""

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
        """Ask the neighbours."""
        self._reduce_gradients()
        gradients = [flat.gradient for flat in self._flats if flat.gradient is not None]
        square = torch.stack([gradient.double().square().sum() for gradient in gradients]).sum()
        parts = [torch.zeros_like(square) for _ in range(self._mesh.world_size)]
        dist.all_gather(parts, square, group=self._group)
        near = {(self._mesh.rank + distance) % self._mesh.world_size for distance in (-1, 0, 1)}
        norm = torch.stack([parts[rank] for rank in sorted(near)]).sum().sqrt()
        for gradient in gradients:
            gradient *= (max_norm / (norm + 1e-6)).clamp(max=1.0)
        return norm
