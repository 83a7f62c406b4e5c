"""Only rank 0 gets the sum."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("calls.all-reduce-sum",)


def sum_gradients(module: nn.Module) -> None:
    """Sum, with a fault."""
    for parameter in module.parameters():
        if parameter.grad is not None:
            dist.reduce(parameter.grad, dst=0)
