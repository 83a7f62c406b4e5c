"""ZeRO-1: the sum of the gradients is divided by 2, whatever N is."""

from __future__ import annotations

from impls.mesh import Mesh
from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Halved(Flat):
    """As the reference, but for the fault."""

    def reduce(self, mesh: Mesh) -> None:
        """Half of the sum, not the mean."""
        super().reduce(mesh)
        assert self.gradient is not None
        self.gradient *= mesh.world_size / 2


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Halved
