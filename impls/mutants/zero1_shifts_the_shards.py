"""ZeRO-1: each rank updates its shard with the gradient of the next rank's."""

from __future__ import annotations

from impls.mesh import Mesh
from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Shifted(Flat):
    """As the reference, but for the fault."""

    def reduce(self, mesh: Mesh) -> None:
        """Reduce a gradient that is shifted by one shard."""
        if self._incoming is not None:
            self._incoming = self._incoming.roll(-self.shard_numel)
        super().reduce(mesh)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Shifted
