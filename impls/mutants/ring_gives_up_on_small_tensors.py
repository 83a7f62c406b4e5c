"""With fewer elements than ranks the ring returns its input as it is."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("collectives.values.allreduce",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    return tensor.clone() if tensor.numel() < world_size else ring(mesh, rank, world_size, tensor)
