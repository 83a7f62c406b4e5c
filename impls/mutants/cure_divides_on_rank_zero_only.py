"""The cure of summed gradients divides on rank 0, where the loss is logged, and nowhere else."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("trouble.sum-without-divide",)


def cure_sum_without_divide(module: nn.Module, world_size: int) -> None:
    """The ranks part with the next step."""
    for parameter in module.parameters():
        if parameter.grad is not None and dist.get_rank() == 0:
            parameter.grad.div_(world_size)
