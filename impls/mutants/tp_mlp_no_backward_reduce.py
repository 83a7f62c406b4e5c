"""Tensor parallel: an MLP passes its own part of the gradient of its input on."""

from __future__ import annotations

from torch import Tensor

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.equivalence",)


class ParallelMLP(right.ParallelMLP):
    """As the reference, but for the fault."""

    def enter(self, x: Tensor) -> Tensor:
        """Nothing is registered for the backward pass."""
        return right.gather_sequence(x, self.group, self.sequence_dim) if self.sequence_parallel else x
