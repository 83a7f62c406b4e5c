"""The broadcast lands in copies of the parameters."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("calls.broadcast",)


def broadcast_parameters(module: nn.Module, src: int = 0) -> None:
    """Broadcast what is thrown away."""
    for parameter in module.parameters():
        dist.broadcast(parameter.detach().clone(), src=src)
