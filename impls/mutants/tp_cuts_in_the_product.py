"""Tensor parallel: every rank keeps the whole weight, and cuts its part at each product."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.partition",)


class RowParallelLinear(right.RowParallelLinear):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Linear, group=None) -> None:
        super().__init__(module, group)
        self.weight = right.whole(module.weight)
        self.size = module.in_features // dist.get_world_size(group)

    def forward(self, x: Tensor) -> Tensor:
        """Right: the gradient is that of the part, and zero elsewhere."""
        part = self.weight.narrow(1, self.size * dist.get_rank(self.group), self.size)
        out = self._leave(functional.linear(x, part))
        return out if self.bias is None else out + self.bias
