"""Tensor parallel: all ranks cut the part of rank 0."""

from __future__ import annotations

from torch import nn

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.partition", "strategies.tensor.equivalence")


class VocabParallelEmbedding(right.VocabParallelEmbedding):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Embedding, group=None) -> None:
        super().__init__(module, group)
        self.weight = nn.Parameter(module.weight.detach()[: len(self.weight)].clone())
