"""The collectives of torch.distributed under the contract's names. The algorithm is the backend's: no ring, no tree.

Two things the raw calls ask of their user are done here: tensors are contiguous (gloo takes a strided one for a dense
one), and bools are combined with MAX, since gloo's SUM adds their bytes and leaves a "bool" of value 2.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor


def all_reduce(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """`torch.distributed.all_reduce` on a copy."""
    total = _dense(tensor).clone()
    dist.all_reduce(total, op=_sum_of(tensor), group=group)
    return total


def all_gather(tensor: Tensor, group: dist.ProcessGroup | None = None) -> list[Tensor]:
    """`torch.distributed.all_gather`."""
    own = _dense(tensor)
    gathered = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, own, group=group)
    return gathered


def reduce_scatter(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """`torch.distributed.reduce_scatter` of the flat tensor, cut by `torch.tensor_split`."""
    chunks = list(_dense(tensor).flatten().tensor_split(dist.get_world_size(group)))
    return _reduce_scatter(torch.empty_like(chunks[dist.get_rank(group)]), chunks, group)


def broadcast(tensor: Tensor, src: int = 0, group: dist.ProcessGroup | None = None) -> Tensor:
    """`torch.distributed.broadcast` on a copy."""
    copy = _dense(tensor).clone()
    dist.broadcast(copy, group=group, group_src=src)
    return copy


def shard_gradients(local_grad: Tensor, chunks: list[Tensor], group: dist.ProcessGroup | None = None) -> Tensor:
    """`torch.distributed.reduce_scatter` as ZeRO-1 uses it."""
    return _reduce_scatter(local_grad, chunks, group)


def gather_parameters(master_shard: Tensor, dtype: torch.dtype, group: dist.ProcessGroup | None = None) -> list[Tensor]:
    """`torch.distributed.all_gather` of the shards, cast to the parameters' dtype."""
    return all_gather(master_shard.to(dtype), group)


def _reduce_scatter(out: Tensor, chunks: list[Tensor], group: dist.ProcessGroup | None) -> Tensor:
    dist.reduce_scatter(out, [_dense(chunk) for chunk in chunks], op=_sum_of(out), group=group)
    return out


def _sum_of(tensor: Tensor) -> dist.ReduceOp.RedOpType:
    return dist.ReduceOp.MAX if tensor.dtype == torch.bool else dist.ReduceOp.SUM


def _dense(tensor: Tensor) -> Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous()
