"""A barrier stands between the two phases of the ring."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import _flat_copy, _neighbours, _reduce_around_ring

BREAKS = ("collectives.ring.steps",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    total = _flat_copy(tensor)
    chunks = total.tensor_split(world_size)
    left, right = _neighbours(rank, world_size)
    _reduce_around_ring(mesh, rank, world_size, total, chunks)
    dist.barrier()
    for step in range(world_size - 1):
        mesh.push(right, chunks[(rank - step) % world_size])
        mesh.pull(left, chunks[(rank - step - 1) % world_size])
    mesh.flush()
    return total.view(tensor.shape)
