"""ZeRO-1: the mean is over the ranks that used a parameter, not over all."""

from __future__ import annotations

import torch
import torch.distributed as dist

from impls.mesh import Mesh
from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class OfUsers(Flat):
    """As the reference, but for the fault."""

    def reduce(self, mesh: Mesh) -> None:
        """Divide by the number of ranks that have a gradient."""
        users = torch.tensor([float(parameter in self._taken) for parameter in self.parameters])
        dist.all_reduce(users)
        super().reduce(mesh)
        assert self.gradient is not None
        for piece in self.pieces:
            count = users[[parameter is piece.parameter for parameter in self.parameters].index(True)]
            self.gradient[piece.within_shard] *= mesh.world_size / count.clamp(min=1)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = OfUsers
