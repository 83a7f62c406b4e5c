"""The cure of unused parameters still leaves out what has no gradient on this rank."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("trouble.unused-parameter-deadlock",)


def cure_unused_parameter_deadlock(module: nn.Module, world_size: int) -> None:
    """The other ranks wait."""
    for parameter in module.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad.div_(world_size)
