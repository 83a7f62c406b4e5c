"""At each step of the gathering ring all pieces so far are sent on, not only the last."""

from __future__ import annotations

import torch
from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403

BREAKS = ("collectives.allgather.bytes",)


def ring_allgather(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """All tensors in rank order."""
    parts = {rank: tensor.flatten()}
    size = tensor.numel()
    for step in range(world_size - 1):
        held = [(rank - back) % world_size for back in range(step + 1)]
        mesh.send((rank + 1) % world_size, torch.cat([parts[owner] for owner in held]))
        arrived = mesh.recv((rank - 1) % world_size)
        for back in range(step + 1):
            parts[(rank - 1 - back) % world_size] = arrived[back * size : (back + 1) * size]
    return torch.cat([parts[owner] for owner in range(world_size)])
