"""Tensor parallel: an MLP that is a function of shards adds the second bias on every rank, before the sum."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from impls.reference.tensor_parallel.regions import copy_to_region, reduce_from_region

BREAKS = ("strategies.tensor.equivalence",)
Group = torch.distributed.ProcessGroup | None


def parallel_mlp(
    x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None, group: Group = None
) -> Tensor:
    """Right but for the fault."""
    inner = functional.relu(functional.linear(copy_to_region(x, group), w1, b1))
    return reduce_from_region(functional.linear(inner, w2, b2), group)
