"""The ring asks torch.distributed for its rank instead of using the one it was given."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("collectives.queue-mesh",)


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    return ring(mesh, dist.get_rank(), world_size, tensor)
