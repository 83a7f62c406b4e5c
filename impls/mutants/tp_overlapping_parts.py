"""Tensor parallel: each rank has half of the next one's rows, too, and uses its own only."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.partition",)


class ColumnParallelLinear(right.ColumnParallelLinear):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Linear, group=None) -> None:
        super().__init__(module, group)
        size, rank = len(self.weight), dist.get_rank(group)
        rows = torch.arange(size * rank, size * rank + size + size // 2) % module.out_features
        self.own = size
        self.weight = nn.Parameter(module.weight.detach()[rows].clone())

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        return functional.linear(self._enter(x), self.weight[: self.own], self.bias)
