"""Tensor parallel: the generator that was seeded by rank for a region is not put back."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.dropout",)


class ParallelAttention(right.ParallelAttention):
    """As the reference, but for the fault."""

    def _dropped(self, weights: Tensor) -> Tensor:
        if self.training and self.dropout.p:
            torch.manual_seed(int(torch.randint(2**31, ())) + dist.get_rank(self.group))
        return self.dropout(weights)
