"""A ring over irecv adds the buffer before the chunk has arrived."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

BREAKS = ("collectives.values.allreduce",)


_pending: list[object] = []


def ring_allreduce(tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    total = passing = tensor.flatten().clone()
    for _ in range(world_size - 1 if tensor.numel() else 0):
        arrived = torch.zeros_like(passing)
        sent = dist.isend(passing, (rank + 1) % world_size)
        coming = dist.irecv(arrived, (rank - 1) % world_size)
        total = total + arrived
        _pending.append((sent, coming))
        passing = arrived
    return total.view(tensor.shape)
