"""Tensor parallel: a column-parallel layer does not sum the gradient of its input."""

from __future__ import annotations

from torch import Tensor

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.equivalence",)


class ColumnParallelLinear(right.ColumnParallelLinear):
    """As the reference, but for the fault."""

    def _enter(self, x: Tensor) -> Tensor:
        return right.gather_sequence(x, self.group, self.sequence_dim) if self.sequence_parallel else x
