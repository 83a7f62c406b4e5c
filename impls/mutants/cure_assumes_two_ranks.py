"""The cure of summed gradients divides by two, which is right on two ranks only."""

from __future__ import annotations

from torch import nn

BREAKS = ("trouble.sum-without-divide",)


def cure_sum_without_divide(module: nn.Module, world_size: int) -> None:
    """Half, however many ranks there are."""
    for parameter in module.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(2)
