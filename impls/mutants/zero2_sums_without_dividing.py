"""ZeRO-2: gradients are summed over the ranks and never divided."""

from __future__ import annotations

from impls.mesh import Mesh
from impls.reference import zero2 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Summed(Flat):
    """As the reference, but for the fault."""

    def reduce(self, mesh: Mesh) -> None:
        """The sum, not the mean."""
        kept, self.gradient = self.gradient, None
        super().reduce(mesh)
        assert self.gradient is not None
        self.gradient = self.gradient * mesh.world_size + (0 if kept is None else kept)


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Summed
