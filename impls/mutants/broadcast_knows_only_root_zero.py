"""Whatever root is asked for, rank 0's tensor is what everyone gets."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import tree_broadcast as broadcast_from

BREAKS = ("collectives.values.broadcast",)


def tree_broadcast(mesh: Mesh, rank: int, world_size: int, tensor: Tensor, src: int = 0) -> Tensor:
    """The root's tensor."""
    return broadcast_from(mesh, rank, world_size, tensor, 0)
