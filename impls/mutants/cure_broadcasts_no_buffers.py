"""The cure of a missing broadcast takes parameters along, and no buffers."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("trouble.missing-broadcast",)


def cure_missing_broadcast(module: nn.Module) -> None:
    """Each rank keeps its own running means."""
    for parameter in module.parameters():
        dist.broadcast(parameter.data, src=0)
