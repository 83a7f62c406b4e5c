"""ZeRO-2: gradients that another rank has and this one has not are dropped on arrival."""

from __future__ import annotations

from impls.mesh import Mesh
from impls.reference import zero2 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class OwnOnly(Flat):
    """As the reference, but for the fault."""

    def reduce(self, mesh: Mesh) -> None:
        """Reduce, and keep what this rank had a gradient of."""
        taken = set(self._taken)
        super().reduce(mesh)
        self.used = {piece for piece in self.used if piece.parameter in taken}


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = OwnOnly
