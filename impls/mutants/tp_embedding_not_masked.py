"""Tensor parallel: ids of other ranks' rows give the first row of this one."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.equivalence",)


class VocabParallelEmbedding(right.VocabParallelEmbedding):
    """As the reference, but for the fault."""

    def forward(self, ids: Tensor) -> Tensor:
        """The sum has N - 1 vectors too many."""
        local = ids - self.first
        foreign = (local < 0) | (local >= len(self.weight))
        vectors = functional.embedding(local.masked_fill(foreign, 0), self.weight)
        return right.reduce_from_region(vectors, self.group)
