"""Rank r ends with chunk r+1, as the first phase of a ring all-reduce may leave it."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import _flat_copy, _neighbours

BREAKS = ("collectives.values.reduce-scatter",)


def ring_reduce_scatter(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """This rank's part of the sum."""
    chunks = list(_flat_copy(tensor).tensor_split(world_size))
    left, right = _neighbours(rank, world_size)
    for step in range(world_size - 1):
        mesh.send(right, chunks[(rank - step) % world_size])
        chunks[(rank - step - 1) % world_size] += mesh.recv(left)
    mesh.flush()
    return chunks[(rank + 1) % world_size].clone()
