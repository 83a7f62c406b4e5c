"""With five ranks every rank waits for its neighbour before it sends."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("collectives.values.allreduce",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    if world_size == 5:
        mesh.recv((rank - 1) % world_size)
    return ring(mesh, rank, world_size, tensor)
