"""ZeRO-2: each bucket is reduce-scattered when it is full, and once more: right, at twice the traffic."""

from __future__ import annotations

from impls.mesh import Mesh
from impls.reference import zero2 as right
from impls.reference.collectives import ring_reduce_scatter
from impls.reference.flat import Flat

BREAKS = ("zero.comm.2",)


class Twice(Flat):
    """As the reference, but for the fault."""

    def reduce(self, mesh: Mesh) -> None:
        """Reduce-scatter what was taken, drop the result, and do it again."""
        whole = self.buffer if self._incoming is None else self._incoming
        ring_reduce_scatter(mesh, mesh.rank, mesh.world_size, whole)
        super().reduce(mesh)


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Twice
