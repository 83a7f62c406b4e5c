"""Tensor parallel: with the sequence cut the gradients of norms are left as each rank's own part."""

from __future__ import annotations

from torch import nn

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.equivalence",)


def tensor_parallel(module: nn.Module, group=None, sequence_parallel: bool = False, sequence_dim: int = 1) -> nn.Module:
    """As the reference, but for the fault."""
    if not hasattr(module, "norm1"):
        return right.tensor_parallel(module, group, sequence_parallel, sequence_dim)
    module.attention = right.ParallelAttention(module.attention, group, sequence_parallel, sequence_dim)
    module.mlp = right.ParallelMLP(module.mlp, group, sequence_parallel, sequence_dim)
    return module
