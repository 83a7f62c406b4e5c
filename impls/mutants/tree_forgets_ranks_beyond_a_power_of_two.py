"""The tree has floor(log2 N) levels, so ranks beyond the last power of two are left out."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403

BREAKS = ("collectives.values.allreduce",)


def tree_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    total = tensor.clone()
    distances = [1 << level for level in range(world_size.bit_length() - 1)]
    inside = 1 << len(distances)
    if rank >= inside:
        return total
    for distance in distances:
        if rank % (2 * distance):
            mesh.send(rank - distance, total)
            break
        total += mesh.recv(rank + distance)
    for distance in reversed(distances):
        if rank % (2 * distance) == distance:
            total = mesh.recv(rank - distance)
        elif rank % (2 * distance) == 0:
            mesh.send(rank + distance, total)
    return total
