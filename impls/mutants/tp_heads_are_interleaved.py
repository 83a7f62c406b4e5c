"""Tensor parallel: the parts of q, k and v are every N-th column, which tears the heads apart."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.equivalence",)


class ParallelAttention(right.ParallelAttention):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, group=None) -> None:
        super().__init__(module, group)
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        for own, whole in ((self.q, module.q), (self.k, module.k), (self.v, module.v)):
            own.weight = nn.Parameter(whole.weight.detach()[rank::size].clone())
            own.bias = None if whole.bias is None else nn.Parameter(whole.bias.detach()[rank::size].clone())
