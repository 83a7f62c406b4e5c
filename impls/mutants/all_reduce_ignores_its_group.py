"""Whatever group it is given, all_reduce sums over all ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

BREAKS = ("collectives.values.allreduce",)


def all_reduce(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """Take a group and forget it."""
    total = tensor.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total
