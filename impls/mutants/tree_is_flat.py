"""The tree has one level: rank 0 hears from every rank and sends the sum to every rank."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403

BREAKS = ("collectives.tree.bytes", "collectives.tree.steps", "collectives.tree.use", "collectives.tree.message-size")


def tree_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    if rank:
        mesh.send(0, tensor)
        return mesh.recv(0)
    total = tensor.clone()
    for other in range(1, world_size):
        total += mesh.recv(other)
    for other in range(1, world_size):
        mesh.send(other, total)
    return total
