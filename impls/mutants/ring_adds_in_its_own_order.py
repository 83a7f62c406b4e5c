"""Each rank adds up all contributions itself, beginning with its own."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allgather

BREAKS = ("collectives.agreement", "collectives.ring.bytes")


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    rows = ring_allgather(mesh, rank, world_size, tensor).view(world_size, *tensor.shape)
    total = rows[rank].clone()
    for distance in range(1, world_size):
        total += rows[(rank + distance) % world_size]
    return total
