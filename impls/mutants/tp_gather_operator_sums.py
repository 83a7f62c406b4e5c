"""Tensor parallel: the operator that gathers has a backward pass that sums: gradients times N."""

from __future__ import annotations

import torch
from torch import Tensor

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


def gather_from_region(tensor: Tensor, group=None) -> Tensor:
    """As the reference, but for the fault."""
    return Summed.apply(tensor, group)
