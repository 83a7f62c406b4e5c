"""The sum lands in copies of the gradients."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("calls.all-reduce-sum",)


def sum_gradients(module: nn.Module) -> None:
    """Sum, with a fault."""
    for parameter in module.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad.clone())
