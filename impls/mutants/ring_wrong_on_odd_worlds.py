"""The ring stops one step early when the number of ranks is odd."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import _flat_copy, _neighbours, _reduce_around_ring

BREAKS = ("collectives.values.allreduce",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    total = _flat_copy(tensor)
    chunks = total.tensor_split(world_size)
    left, right = _neighbours(rank, world_size)
    _reduce_around_ring(mesh, rank, world_size, total, chunks)
    for step in range(world_size - 1 - world_size % 2):
        mesh.push(right, chunks[(rank - step) % world_size])
        mesh.pull(left, chunks[(rank - step - 1) % world_size])
    mesh.flush()
    return total.view(tensor.shape)
