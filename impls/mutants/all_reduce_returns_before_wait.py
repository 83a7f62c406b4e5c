"""The result is used before the asynchronous all-reduce has been waited for."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

BREAKS = ("collectives.values.allreduce",)


_pending: list[object] = []


def all_reduce(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """Sum over the ranks of `group`."""
    total = tensor.clone(memory_format=torch.contiguous_format)
    _pending.append(dist.all_reduce(total, group=group, async_op=True))
    return total
