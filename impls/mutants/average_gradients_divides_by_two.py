"""The sum is divided by 2, whatever N is."""

from __future__ import annotations

from torch import nn

from impls.reference.calls import sum_gradients as sum_up

BREAKS = ("calls.div",)


def average_gradients(module: nn.Module, world_size: int) -> None:
    """Sum, then a division with a fault."""
    sum_up(module)
    for parameter in module.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(2)
