"""The cure of unused parameters sends zeros for a missing gradient, and leaves it missing on its own rank."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

BREAKS = ("trouble.unused-parameter-deadlock",)


def cure_unused_parameter_deadlock(module: nn.Module, world_size: int) -> None:
    """Nobody waits, and the rank without a gradient does not take the step of the others."""
    for parameter in module.parameters():
        grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        dist.all_reduce(grad)
        grad /= world_size
