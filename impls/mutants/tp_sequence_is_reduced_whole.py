"""Tensor parallel: with the sequence cut the output is all-reduced, and cut afterwards."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from impls.reference.tensor_parallel import blocks as right
from impls.reference.tensor_parallel import layers
from impls.reference.tensor_parallel.regions import all_gather, all_reduce, part_of

BREAKS = ("strategies.tensor.traffic",)


class AllReduced(torch.autograd.Function):
    """Half of what it sends is thrown away."""

    @staticmethod
    def forward(ctx, tensor: Tensor, group, dim: int) -> Tensor:
        """Right, and twice a reduce-scatter."""
        ctx.group, ctx.dim = group, dim
        return part_of(all_reduce(tensor, group), group, dim)

    @staticmethod
    def backward(ctx, gradient: Tensor):
        """As the reference."""
        return all_gather(gradient, ctx.group, ctx.dim), None, None


class Row(layers.RowParallelLinear):
    """As the reference, but for the fault."""

    def _leave(self, out: Tensor) -> Tensor:
        return AllReduced.apply(out, self.group, self.sequence_dim) if self.sequence_parallel else super()._leave(out)


class ParallelMLP(right.ParallelMLP):
    """As the reference, but for the fault."""

    def row_parallel(self, module: nn.Linear) -> Row:
        """As the reference, but for the fault."""
        return Row(module, self.group, sequence_parallel=self.sequence_parallel, sequence_dim=self.sequence_dim)
