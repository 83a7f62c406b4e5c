"""Gradients are brought to FP32 when a step is over, for the microbatches to come."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("memory.mixed-16p",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def step(self) -> None:
        """Update."""
        super().step()
        self._kept = [grad.float() for grad in self._gradients()]
