"""Tensor parallel: every rank adds the bias before the sum, so that the output has it N times."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.equivalence",)


class RowParallelLinear(right.RowParallelLinear):
    """As the reference, but for the fault."""

    def forward(self, x: Tensor) -> Tensor:
        """The bias is in each rank's product."""
        part = x if self.input_is_parallel else right.scatter_to_region(x, self.group)
        return self._leave(functional.linear(part, self.weight, self.bias))
