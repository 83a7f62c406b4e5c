"""Tensor parallel: the heads of all ranks drop the same probabilities."""

from __future__ import annotations

from torch import Tensor

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.dropout",)


class ParallelAttention(right.ParallelAttention):
    """As the reference, but for the fault."""

    def _dropped(self, weights: Tensor) -> Tensor:
        return self.dropout(weights)
