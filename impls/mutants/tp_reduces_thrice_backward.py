"""Tensor parallel: q, k and v of an attention each sum the gradient of their common input."""

from __future__ import annotations

from torch import Tensor, nn

from impls.reference.tensor_parallel import blocks as right
from impls.reference.tensor_parallel.layers import ColumnParallelLinear

BREAKS = ("strategies.tensor.traffic",)


class ParallelAttention(right.ParallelAttention):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, group=None) -> None:
        super().__init__(module, group)
        self.q, self.k, self.v = (ColumnParallelLinear(part, group) for part in (module.q, module.k, module.v))

    def enter(self, x: Tensor) -> Tensor:
        """Each of the three layers has its own f."""
        return x
