"""ZeRO-2: gradients are all-reduced and then cut, where a reduce-scatter sends half as much."""

from __future__ import annotations

import torch
import torch.distributed as dist

from impls.mesh import Mesh
from impls.reference import zero2 as right
from impls.reference.flat import Flat, _is_negative_zero

BREAKS = ("zero.torch-name.2", "zero.comm.2", "collectives.reduce-scatter.use")


class AllReduced(Flat):
    """As the reference, but for the fault."""

    group: dist.ProcessGroup | None = None

    def reduce(self, mesh: Mesh) -> None:
        """All-reduce what was taken, and add this rank's shard of the mean to `gradient`."""
        whole = torch.full_like(self.buffer, -0.0) if self._incoming is None else self._incoming
        dist.all_reduce(whole, group=self.group)
        total = whole.tensor_split(mesh.world_size)[mesh.rank]
        for piece in self.pieces:
            if piece.parameter in self._taken or not _is_negative_zero(total[piece.within_shard][0]):
                self.used.add(piece)
        mean = total / mesh.world_size
        self.gradient = mean if self.gradient is None else self.gradient.add_(mean)
        self._incoming = None
        self._taken.clear()


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = AllReduced
            flat.group = self._group  # type: ignore[attr-defined]  # of AllReduced
