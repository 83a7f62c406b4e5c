"""Tensor parallel: an attention cuts its square output matrix by columns, and uses the part as one of rows."""

from __future__ import annotations

from torch import nn

from impls.reference.tensor_parallel import blocks as right
from impls.reference.tensor_parallel.regions import part_of

BREAKS = ("strategies.tensor.equivalence",)


class ParallelAttention(right.ParallelAttention):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, group=None, sequence_parallel: bool = False, sequence_dim: int = 1) -> None:
        super().__init__(module, group, sequence_parallel, sequence_dim)
        self.out.weight = nn.Parameter(part_of(module.out.weight.detach(), group, 0).T.contiguous())
