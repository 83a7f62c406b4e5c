"""ZeRO-2: with accumulation the clipping norm is that of the last microbatch."""

from __future__ import annotations

import torch
from torch import Tensor

from impls.mesh import Mesh
from impls.reference import zero2 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Latest(Flat):
    """As the reference, but for the fault."""

    latest: Tensor | None = None  # what the last microbatch added

    def reduce(self, mesh: Mesh) -> None:
        """Remember it."""
        before, self.gradient = self.gradient, None
        super().reduce(mesh)
        assert self.gradient is not None
        self.latest = self.gradient.clone()
        if before is not None:
            self.gradient += before


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Latest

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """By the norm of the last microbatch."""
        self._reduce_gradients()
        kept = [(flat, flat.gradient) for flat in self._flats if isinstance(flat, Latest)]
        for flat, _ in kept:
            flat.gradient = None if flat.latest is None else flat.latest.clone()
        norm = super().clip_grad_norm_(max_norm)
        for flat, gradient in kept:
            assert gradient is not None
            flat.gradient = gradient * (max_norm / (norm + 1e-6)).clamp(max=1.0)
        return norm
