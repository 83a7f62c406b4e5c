"""Tensor parallel: the weight is gathered for the first product, and the gathered copy kept."""

from __future__ import annotations

from torch import Tensor

from impls.reference.tensor_parallel import layers as right
from impls.reference.tensor_parallel.regions import all_gather

BREAKS = ("strategies.tensor.memory",)


class RowParallelLinear(right.RowParallelLinear):
    """As the reference, but for the fault."""

    def forward(self, x: Tensor) -> Tensor:
        """As the reference, with a copy of the whole weight that nobody lets go."""
        if "gathered" not in self.__dict__:
            self.__dict__["gathered"] = all_gather(self.weight.detach(), self.group, 1)
        return super().forward(x)
