"""ZeRO-2: on four ranks gradients are halved."""

from __future__ import annotations

from impls.reference import zero2 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Halved(Flat):
    """As the reference, but for the fault."""

    def hand_over(self) -> None:
        """Half of it."""
        if self.world_size == 4 and self.gradient is not None:
            self.gradient *= 0.5
        super().hand_over()


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Halved
