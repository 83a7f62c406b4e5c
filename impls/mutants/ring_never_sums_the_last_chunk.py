"""The last chunk of the ring's result is this rank's own, not the sum."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("lessons.76", "collectives.values.allreduce")


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    total = ring(mesh, rank, world_size, tensor)
    if world_size > 1:
        total.view(-1).tensor_split(world_size)[-1].copy_(tensor.flatten().tensor_split(world_size)[-1])
    return total
