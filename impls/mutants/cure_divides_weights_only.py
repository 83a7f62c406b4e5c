"""The cure of summed gradients divides those of matrices, and forgets biases."""

from __future__ import annotations

from torch import nn

BREAKS = ("trouble.sum-without-divide",)


def cure_sum_without_divide(module: nn.Module, world_size: int) -> None:
    """Biases learn world_size times as fast."""
    for parameter in module.parameters():
        if parameter.grad is not None and parameter.dim() > 1:
            parameter.grad.div_(world_size)
