"""Tensor parallel: the shards are views, which keep the whole matrices alive."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference.tensor_parallel import blocks as right
from impls.reference.tensor_parallel.regions import parts_of

BREAKS = ("strategies.tensor.memory",)


class ParallelMLP(right.ParallelMLP):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, group=None, sequence_parallel: bool = False, sequence_dim: int = 1) -> None:
        super().__init__(module, group, sequence_parallel, sequence_dim)
        rank = dist.get_rank(group)
        self.up.weight = nn.Parameter(parts_of(module.up.weight.detach(), group, 0)[rank], self.up.weight.requires_grad)
        self.down.weight = nn.Parameter(parts_of(module.down.weight.detach(), group, 1)[rank])
