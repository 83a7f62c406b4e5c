"""The root moves its tensor out instead of copying it."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import tree_broadcast as broadcast_from

BREAKS = ("collectives.values.broadcast",)


def tree_broadcast(mesh: Mesh, rank: int, world_size: int, tensor: Tensor, src: int = 0) -> Tensor:
    """The root's tensor."""
    result = broadcast_from(mesh, rank, world_size, tensor, src)
    if rank == src:
        tensor.zero_()
    return result
