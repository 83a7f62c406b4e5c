"""Frozen parameters are not broadcast."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("calls.broadcast",)


def broadcast_parameters(module: nn.Module, src: int = 0) -> None:
    """Broadcast some parameters."""
    for parameter in module.parameters():
        if parameter.requires_grad:
            dist.broadcast(parameter.data, src=src)
