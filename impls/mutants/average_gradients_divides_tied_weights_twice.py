"""A parameter with two names is divided under each of them."""

from __future__ import annotations

from torch import nn

from impls.reference.calls import sum_gradients as sum_up

BREAKS = ("calls.div",)


def average_gradients(module: nn.Module, world_size: int) -> None:
    """Sum, then a division with a fault."""
    sum_up(module)
    for _, parameter in module.named_parameters(remove_duplicate=False):
        if parameter.grad is not None:
            parameter.grad.div_(world_size)
