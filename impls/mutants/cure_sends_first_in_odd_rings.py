"""The cure of send/send is applied to even numbers of ranks only: an odd ring still locks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

BREAKS = ("trouble.pipeline-send-send",)


def cure_pipeline_send_send(rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """The previous rank's tensor, for an even number of ranks."""
    arrived = torch.empty_like(tensor)
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    if rank % 2 == 0 or world_size % 2:
        dist.send(tensor, after)
        dist.recv(arrived, before)
    else:
        dist.recv(arrived, before)
        dist.send(tensor, after)
    return arrived
