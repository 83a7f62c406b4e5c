"""Tensor parallel: the backward pass of the sum is another sum: gradients times N."""

from __future__ import annotations

import torch
from torch import Tensor

from impls.reference.tensor_parallel import layers as right
from impls.reference.tensor_parallel.regions import all_reduce

BREAKS = ("strategies.tensor.equivalence",)


class Summed(torch.autograd.Function):
    """A sum with a sum for its backward pass."""

    @staticmethod
    def forward(ctx, tensor: Tensor, group) -> Tensor:
        """As the reference."""
        ctx.group = group
        return all_reduce(tensor, group)

    @staticmethod
    def backward(ctx, gradient: Tensor):
        """N times the gradient."""
        return all_reduce(gradient, ctx.group), None


class RowParallelLinear(right.RowParallelLinear):
    """As the reference, but for the fault."""

    def _leave(self, out: Tensor) -> Tensor:
        return Summed.apply(out, self.group)
