"""Tensor parallel: the backward pass of the gather sums what is the same on all ranks: gradients times N."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from impls.reference.tensor_parallel import layers as right
from impls.reference.tensor_parallel.regions import all_gather, reduce_scatter

BREAKS = ("strategies.tensor.equivalence",)


class Summed(torch.autograd.Function):
    """A gather whose backward pass sums the gradients that all ranks have alike."""

    @staticmethod
    def forward(ctx, tensor: Tensor, group) -> Tensor:
        """As the reference."""
        ctx.group = group
        return all_gather(tensor, group, -1)

    @staticmethod
    def backward(ctx, gradient: Tensor):
        """N times the gradient."""
        return reduce_scatter(gradient, ctx.group, -1), None


class ColumnParallelLinear(right.ColumnParallelLinear):
    """As the reference, but for the fault."""

    def forward(self, x: Tensor) -> Tensor:
        """Gathered by an operator that is differentiable in its own way."""
        part = functional.linear(self._enter(x), self.weight, self.bias)
        return Summed.apply(part, self.group) if self.gather_output else part
