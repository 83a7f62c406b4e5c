"""Every rank is left with the whole sum."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce

BREAKS = ("collectives.values.reduce-scatter", "faq.why-reduce-scatter")


def ring_reduce_scatter(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """This rank's part of the sum."""
    return ring_allreduce(mesh, rank, world_size, tensor).flatten()
