"""Tensor parallel: the shards of frozen weights learn."""

from __future__ import annotations

from torch import nn

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.equivalence",)


class ParallelMLP(right.ParallelMLP):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, group=None) -> None:
        super().__init__(module, group)
        self.requires_grad_(True)
