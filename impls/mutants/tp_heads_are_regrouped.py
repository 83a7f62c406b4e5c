"""Tensor parallel: where N does not divide the heads, each rank makes other heads of its width."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.equivalence",)


class ParallelAttention(right.ParallelAttention):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, group=None) -> None:
        size = dist.get_world_size(group)
        heads, module.num_heads = module.num_heads, size
        super().__init__(module, group)
        self.head_dim = len(self.q.weight) // max(1, heads // size)
