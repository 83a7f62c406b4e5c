"""The tree has one branch: each rank hears from the next one only."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403

BREAKS = ("collectives.tree.steps", "collectives.tree.use")


def tree_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    total = tensor.clone()
    if rank + 1 < world_size:
        total += mesh.recv(rank + 1)
    if rank:
        mesh.send(rank - 1, total)
        total = mesh.recv(rank - 1)
    if rank + 1 < world_size:
        mesh.send(rank + 1, total)
    return total
