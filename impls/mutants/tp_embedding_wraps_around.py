"""Tensor parallel: ids are taken modulo the rows of a rank, and only those above them masked."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from impls.reference.tensor_parallel import layers as right

BREAKS = ("strategies.tensor.equivalence",)


class VocabParallelEmbedding(right.VocabParallelEmbedding):
    """As the reference, but for the fault."""

    def forward(self, ids: Tensor) -> Tensor:
        """Ids below this rank's part are taken for some of its rows."""
        local = ids - self.first
        foreign = local >= len(self.weight)
        vectors = functional.embedding(local % len(self.weight), self.weight)
        return right.reduce_from_region(vectors.masked_fill(foreign.unsqueeze(-1), 0.0), self.group)
