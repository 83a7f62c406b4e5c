"""The gradient of every parameter is asked for, also where there is none."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("calls.all-reduce-sum",)


def sum_gradients(module: nn.Module) -> None:
    """Sum, with a fault."""
    for parameter in module.parameters():
        dist.all_reduce(parameter.grad.data)  # type: ignore[union-attr]  # the fault
