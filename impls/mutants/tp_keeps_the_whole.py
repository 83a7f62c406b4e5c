"""Tensor parallel: the whole layer that the shard was cut from is kept beside it."""

from __future__ import annotations

from torch import nn

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.memory",)


class ColumnParallelLinear(right.ColumnParallelLinear):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Linear, group=None, gather_output: bool = False) -> None:
        super().__init__(module, group, gather_output)
        self.__dict__["whole"] = [module]
