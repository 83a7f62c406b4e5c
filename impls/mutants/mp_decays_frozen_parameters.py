"""Frozen parameters decay with the others."""

from __future__ import annotations

import torch

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def step(self) -> None:  # type: ignore[override]
        """As the reference, but for the fault."""
        for parameter in self._parameters():
            if not parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
        super().step()
