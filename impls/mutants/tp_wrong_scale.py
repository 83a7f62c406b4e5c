"""Tensor parallel: scores are scaled by the width that a rank has of all heads, not by that of a head."""

from __future__ import annotations

import torch
from torch import Tensor

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.equivalence",)


class ParallelAttention(right.ParallelAttention):
    """As the reference, but for the fault."""

    def forward(self, x: Tensor) -> Tensor:
        """As the reference, but for the scale."""
        whole = self.enter(x)
        q, k, v = (self._heads(layer(whole)) for layer in (self.q, self.k, self.v))
        weights = torch.softmax(q @ k.transpose(-2, -1) * len(self.q.weight) ** -0.5, dim=-1)
        return self.out((self._dropped(weights) @ v).transpose(1, 2).flatten(2))
