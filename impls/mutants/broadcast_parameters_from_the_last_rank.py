"""Parameters are broadcast from the last rank."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("calls.broadcast",)


def broadcast_parameters(module: nn.Module) -> None:
    """Broadcast from the wrong end."""
    for parameter in module.parameters():
        dist.broadcast(parameter.data, src=dist.get_world_size() - 1)
