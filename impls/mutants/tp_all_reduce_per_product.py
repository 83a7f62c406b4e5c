"""Tensor parallel: the hidden layer of an MLP is made whole after the first product, and cut again."""

from __future__ import annotations

from torch import Tensor

from impls.reference.tensor_parallel import blocks as right
from impls.reference.tensor_parallel.regions import gather_from_region, scatter_to_region

BREAKS = ("strategies.tensor.traffic",)


class ParallelMLP(right.ParallelMLP):
    """As the reference, but for the fault."""

    def forward(self, x: Tensor) -> Tensor:
        """Right, and sent twice."""
        hidden = gather_from_region(self.up(self.enter(x)), self.group)
        return self.down(scatter_to_region(self.activation(hidden), self.group))
