"""Tensor parallel: a strided tensor is summed as it lies in memory, which gloo takes for a dense one."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

BREAKS = ("strategies.tensor.equivalence",)


class Sum(torch.autograd.Function):
    """As the reference, but for the fault."""

    @staticmethod
    def forward(ctx, tensor: Tensor, group) -> Tensor:
        """In the strides of the input."""
        total = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        total.copy_(tensor)
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor):
        """As the reference."""
        return gradient, None


def reduce_from_region(tensor: Tensor, group=None) -> Tensor:
    """As the reference, but for the fault."""
    return Sum.apply(tensor, group)
