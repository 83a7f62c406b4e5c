"""Tensor parallel: the sum is formed from the partial outputs of all ranks, gathered: N of them, not 2."""

from __future__ import annotations

import torch
from torch import Tensor

from impls.reference.tensor_parallel import layers as right
from impls.reference.tensor_parallel.regions import all_gather

BREAKS = ("strategies.tensor.traffic",)


class Gathered(torch.autograd.Function):
    """A sum of everything from everywhere."""

    @staticmethod
    def forward(ctx, tensor: Tensor, group) -> Tensor:
        """Right, at N/2 times the price."""
        return all_gather(tensor.unsqueeze(0), group, 0).sum(0)

    @staticmethod
    def backward(ctx, gradient: Tensor):
        """As the reference."""
        return gradient, None


class RowParallelLinear(right.RowParallelLinear):
    """As the reference, but for the fault."""

    def _leave(self, out: Tensor) -> Tensor:
        return super()._leave(out) if self.sequence_parallel else Gathered.apply(out, self.group)
