"""The cure of send/send changes nothing: every rank still sends first."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

BREAKS = ("trouble.pipeline-send-send",)


def cure_pipeline_send_send(rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """The previous rank's tensor, were it ever to arrive."""
    arrived = torch.empty_like(tensor)
    dist.send(tensor, (rank + 1) % world_size)
    dist.recv(arrived, (rank - 1) % world_size)
    return arrived
