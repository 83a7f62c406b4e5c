"""The gathering ring takes N steps: the last brings each piece back to its owner."""

from __future__ import annotations

import torch
from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403

BREAKS = ("collectives.allgather.steps", "collectives.allgather.bytes")


def ring_allgather(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """All tensors in rank order."""
    parts = [tensor.flatten()] * world_size
    for step in range(world_size if world_size > 1 else 0):
        mesh.send((rank + 1) % world_size, parts[(rank - step) % world_size])
        parts[(rank - step - 1) % world_size] = mesh.recv((rank - 1) % world_size)
    return torch.cat(parts)
