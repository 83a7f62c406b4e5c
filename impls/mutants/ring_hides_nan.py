"""What is NaN or infinite in the sum becomes a finite number."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference.collectives import ring_allreduce as right

BREAKS = ("collectives.values.allreduce",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Clean up at the end."""
    return right(mesh, rank, world_size, tensor).nan_to_num_()
