"""The chunk is returned before the asynchronous reduce-scatter has been waited for."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

BREAKS = ("collectives.values.reduce-scatter",)


_pending: list[object] = []


def reduce_scatter(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """This rank's part of the sum."""
    chunks = [chunk.contiguous() for chunk in tensor.flatten().tensor_split(dist.get_world_size(group))]
    own = torch.zeros_like(chunks[dist.get_rank(group)])
    _pending.append((dist.reduce_scatter(own, chunks, group=group, async_op=True), chunks))
    return own
