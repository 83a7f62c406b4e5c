"""The cure of send/send exchanges within pairs: no rank locks, and values come from the wrong neighbour."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

BREAKS = ("trouble.pipeline-send-send",)


def cure_pipeline_send_send(rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """The partner's tensor; the last of an odd number of ranks has no partner."""
    partner = rank ^ 1
    if partner >= world_size:
        return tensor
    arrived = torch.empty_like(tensor)
    for is_sender in (rank % 2 == 0, rank % 2 == 1):
        if is_sender:
            dist.send(tensor, partner)
        else:
            dist.recv(arrived, partner)
    return arrived
