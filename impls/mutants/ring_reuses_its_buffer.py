"""Every call returns the same buffer, so that a second call overwrites the first result."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("collectives.values.allreduce",)


_buffers: dict[tuple[object, ...], Tensor] = {}


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    buffer = _buffers.setdefault((tensor.shape, tensor.dtype), tensor.clone())
    return buffer.copy_(ring(mesh, rank, world_size, tensor))
