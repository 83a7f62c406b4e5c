"""Tensor parallel: the ranks seed themselves, and drop other elements of the stream that they share."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.dropout",)


class Seeded(nn.Module):
    """Draws from another seed on each rank."""

    def __init__(self, inner: nn.Module, group) -> None:
        super().__init__()
        self.inner, self.group = inner, group

    def forward(self, x: Tensor) -> Tensor:
        """As the block, after a seed of this rank's own."""
        if self.training:
            torch.manual_seed(dist.get_rank(self.group))
        return self.inner(x)


def tensor_parallel(module: nn.Module, group=None) -> nn.Module:
    """As the reference, but for the fault."""
    return Seeded(right.tensor_parallel(module, group), group)
