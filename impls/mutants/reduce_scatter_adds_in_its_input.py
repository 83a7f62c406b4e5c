"""The ring adds the arriving chunks into its input."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import _reduce_around_ring

BREAKS = ("collectives.values.reduce-scatter",)


def ring_reduce_scatter(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """This rank's part of the sum."""
    chunks = tensor.reshape(-1).tensor_split(world_size)
    _reduce_around_ring(mesh, rank, world_size, tensor, chunks)
    mesh.flush()
    return chunks[rank].clone()
