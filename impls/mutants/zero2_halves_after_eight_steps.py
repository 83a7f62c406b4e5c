"""ZeRO-2: from the ninth step on gradients are halved."""

from __future__ import annotations

from impls.reference import zero2 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    _num_steps = 0

    def _update(self, flat: Flat) -> None:
        if self._num_steps >= 8 and flat.gradient is not None:
            flat.gradient *= 0.5
        super()._update(flat)

    def _end_step(self) -> None:
        super()._end_step()
        self._num_steps += 1
