"""Tensor parallel: with the sequence cut, the parts of the ranks are joined along the batch."""

from __future__ import annotations

from torch import nn

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.equivalence",)


class ParallelAttention(right.ParallelAttention):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, group=None, sequence_parallel: bool = False, sequence_dim: int = 1) -> None:
        super().__init__(module, group, sequence_parallel, 0)
