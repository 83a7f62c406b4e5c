"""Works in place, but the chunks of the second phase only reach the returned copy."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("collectives.values.allreduce",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    total = ring(mesh, rank, world_size, tensor)
    half = tensor.numel() // 2
    tensor.view(-1)[:half] = total.view(-1)[:half]
    return total
