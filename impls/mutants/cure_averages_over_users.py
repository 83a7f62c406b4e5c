"""The cure of unused parameters divides by the ranks that have a gradient, as if the others had not been there."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

BREAKS = ("trouble.unused-parameter-deadlock",)


def cure_unused_parameter_deadlock(module: nn.Module, world_size: int) -> None:
    """A gradient that is too large where some rank has none."""
    for parameter in module.parameters():
        users = torch.tensor(float(parameter.grad is not None))
        grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        dist.all_reduce(users)
        dist.all_reduce(grad)
        parameter.grad = grad / users.clamp(min=1.0)
