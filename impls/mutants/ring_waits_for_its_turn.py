"""The ranks send one after the other, so that the chain of messages is N times as long."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import _flat_copy, _neighbours

BREAKS = ("collectives.ring.steps",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    total = _flat_copy(tensor)
    chunks = total.tensor_split(world_size)
    left, right = _neighbours(rank, world_size)
    for step in range(2 * (world_size - 1)):
        leaving, coming = chunks[(rank - step) % world_size], chunks[(rank - step - 1) % world_size]
        if rank == 0:
            mesh.send(right, leaving)
        arrived = mesh.recv(left)
        if rank:
            mesh.send(right, leaving)
        coming.copy_(arrived if step >= world_size - 1 else coming + arrived)
    mesh.flush()
    return total.view(tensor.shape)
