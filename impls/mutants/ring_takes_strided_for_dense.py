"""The memory behind a strided tensor is read as if it lay in one piece."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("collectives.values.allreduce",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    dense = tensor.as_strided((tensor.numel(),), (1,)) if tensor.dim() else tensor
    return ring(mesh, rank, world_size, dense).view(tensor.shape)
