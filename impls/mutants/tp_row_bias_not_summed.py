"""Tensor parallel: with the sequence cut the gradient of a row-parallel bias is that of each rank's own part."""

from __future__ import annotations

from torch import nn

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.equivalence",)


class RowParallelLinear(right.RowParallelLinear):
    """As the reference, but for the fault."""

    def __init__(
        self,
        module: nn.Linear,
        group=None,
        input_is_parallel: bool = True,
        sequence_parallel: bool = False,
        sequence_dim: int = 1,
    ) -> None:
        super().__init__(module, group, input_is_parallel, sequence_parallel, sequence_dim)
        if self.bias is not None:
            self.bias = right.whole(module.bias)  # without the hook
