"""The cure of a missing broadcast takes the mean of all ranks' weights: equal, and not those of rank 0."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("trouble.missing-broadcast",)


def cure_missing_broadcast(module: nn.Module) -> None:
    """Smaller weights than any initialisation makes."""
    for value in (*module.parameters(), *module.buffers()):
        dist.all_reduce(value.data)
        value.data /= dist.get_world_size()
