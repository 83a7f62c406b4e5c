"""The gathering ring takes N-2 steps, and one piece is missing on each rank."""

from __future__ import annotations

import torch
from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403

BREAKS = ("collectives.values.allgather",)


def ring_allgather(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """All tensors in rank order."""
    parts = [torch.zeros_like(tensor.flatten())] * world_size
    parts[rank] = tensor.flatten()
    for step in range(world_size - 2):
        mesh.send((rank + 1) % world_size, parts[(rank - step) % world_size])
        parts[(rank - step - 1) % world_size] = mesh.recv((rank - 1) % world_size)
    return torch.cat(parts)
