"""ZeRO-2: this rank's shard of the gradient is a view of the bucket, which it keeps alive whole."""

from __future__ import annotations

from impls.mesh import Mesh
from impls.reference import flat as parts
from impls.reference import zero2 as right

BREAKS = ("zero.sharded.2", "zero.memory.2", "zero.saving.2")


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = _Flat


class _Flat(parts.Flat):
    def reduce(self, mesh: Mesh) -> None:
        """As the reference, but for the fault."""
        super().reduce(mesh)
        bucket = self.buffer.new_zeros(self.buffer.shape)
        shard = bucket[mesh.rank * self.shard_numel :][: self.shard_numel]
        self.gradient = shard.copy_(self.gradient)
