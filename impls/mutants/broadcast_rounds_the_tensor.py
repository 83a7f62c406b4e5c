"""The tensor is sent in float16."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import tree_broadcast as broadcast_from

BREAKS = ("collectives.values.broadcast",)


def tree_broadcast(mesh: Mesh, rank: int, world_size: int, tensor: Tensor, src: int = 0) -> Tensor:
    """The root's tensor."""
    if not tensor.is_floating_point():
        return broadcast_from(mesh, rank, world_size, tensor, src)
    return broadcast_from(mesh, rank, world_size, tensor.half(), src).to(tensor.dtype)
