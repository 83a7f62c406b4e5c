"""Beyond 2**16 elements the sum is this rank's own tensor."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference.collectives import ring_allreduce as right

BREAKS = ("collectives.values.allreduce",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Put the tail back."""
    total = right(mesh, rank, world_size, tensor)
    total.view(-1)[2**16 :] = tensor.reshape(-1)[2**16 :]
    return total
