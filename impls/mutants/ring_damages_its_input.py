"""The ring uses its input as scratch space and leaves partial sums in it."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import _neighbours, _reduce_around_ring

BREAKS = ("collectives.values.allreduce",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    chunks = tensor.view(-1).tensor_split(world_size)
    left, right = _neighbours(rank, world_size)
    _reduce_around_ring(mesh, rank, world_size, tensor, chunks)
    mesh.flush()
    total = tensor.clone()
    parts = total.view(-1).tensor_split(world_size)
    for step in range(world_size - 1):
        mesh.push(right, parts[(rank - step) % world_size])
        mesh.pull(left, parts[(rank - step - 1) % world_size])
    mesh.flush()
    return total
