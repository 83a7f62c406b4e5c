"""ZeRO-2: shards of numel // N elements: what N does not divide at the end is never trained."""

from __future__ import annotations

from impls.mesh import Mesh
from impls.reference import zero2 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Cut(Flat):
    """As the reference, but for the fault."""

    def reduce(self, mesh: Mesh) -> None:
        """Reduce, and forget what is behind the last whole shard."""
        super().reduce(mesh)
        numel = sum(parameter.numel() for parameter in self.parameters)
        covered = mesh.world_size * (numel // mesh.world_size) - mesh.rank * self.shard_numel
        assert self.gradient is not None
        self.gradient[max(0, covered) :] = 0


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Cut
