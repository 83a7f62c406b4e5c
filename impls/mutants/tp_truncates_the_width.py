"""Tensor parallel: of a width that N does not divide the rest is on no rank, and nobody says so."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.equivalence",)


def cut(parameter: Tensor, group, dim: int) -> nn.Parameter:
    """Width // N lines of it: what is left over is on no rank."""
    size = parameter.shape[dim] // dist.get_world_size(group)
    part = parameter.detach().narrow(dim, size * dist.get_rank(group), size)
    return nn.Parameter(part.clone(), requires_grad=parameter.requires_grad)


class ColumnParallelLinear(nn.Module):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Linear, group=None) -> None:
        super().__init__()
        self.weight = cut(module.weight, group, 0)
        self.bias = None if module.bias is None else cut(module.bias, group, 0)
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        """As the reference."""
        return functional.linear(right.copy_to_region(x, self.group), self.weight, self.bias)
