"""Tensor parallel: partial products are averaged over ranks, as gradients are in data parallelism."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.equivalence",)


class RowParallelLinear(right.RowParallelLinear):
    """As the reference, but for the fault."""

    def _leave(self, out: Tensor) -> Tensor:
        return super()._leave(out) / dist.get_world_size(self.group)
