"""Chunks have numel // N elements, and what is left over is never summed."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("collectives.values.allreduce",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    total = tensor.flatten().clone()
    even = total.numel() // world_size * world_size
    total[:even] = ring(mesh, rank, world_size, total[:even])
    return total.view(tensor.shape)
