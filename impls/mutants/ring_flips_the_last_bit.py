"""The last rank's result is one unit in the last place larger."""

from __future__ import annotations

import torch
from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("collectives.agreement",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    total = ring(mesh, rank, world_size, tensor)
    if rank == world_size - 1 and total.is_floating_point():
        total = torch.nextafter(total, torch.full_like(total, torch.inf)) if total.itemsize > 2 else total * 1.01
    return total
