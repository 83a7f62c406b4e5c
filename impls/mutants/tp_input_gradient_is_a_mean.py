"""Tensor parallel: the gradient of the input is averaged over ranks, as in data parallelism."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.equivalence",)


class ColumnParallelLinear(right.ColumnParallelLinear):
    """As the reference, but for the fault."""

    def _enter(self, x: Tensor) -> Tensor:
        part = super()._enter(x)
        if part.requires_grad:
            part.register_hook(lambda gradient: gradient / dist.get_world_size(self.group))
        return part
