"""Rings straight over torch.distributed, no mesh at all: of chunks that are padded to one size.

The all-reduce has blocking sends, so odd ranks receive first; the others go by isend and irecv.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def _exchange(outgoing, n, rank):
    incoming = torch.empty_like(outgoing)
    if outgoing.numel() == 0:
        return incoming
    works = [dist.irecv(incoming, (rank - 1) % n), dist.isend(outgoing, (rank + 1) % n)]
    for work in works:
        work.wait()
    return incoming


def _exchange_in_halves(outgoing, n, rank):
    incoming = torch.empty_like(outgoing)
    if outgoing.numel() == 0 or n == 1:
        return incoming
    if rank % 2:
        dist.recv(incoming, (rank - 1) % n)
    dist.send(outgoing, (rank + 1) % n)
    if not rank % 2:
        dist.recv(incoming, (rank - 1) % n)
    return incoming


def _padded(x, n):
    """[n, ceil(numel / n)]"""
    size = -(-x.numel() // n)
    out = torch.zeros(n * size, dtype=x.dtype)
    out[: x.numel()] = x.reshape(-1)
    return out.view(n, size)


def ring_all_reduce(x, group=None):
    rank, n = dist.get_rank(group), dist.get_world_size(group)
    rows = _padded(x, n)
    for step in range(2 * n - 2):
        leaving, coming = (rank - step) % n, (rank - step - 1) % n
        arrived = _exchange_in_halves(rows[leaving].clone(), n, rank)
        rows[coming] = rows[coming] + arrived if step < n - 1 else arrived
    return rows.view(-1)[: x.numel()].view(x.shape)


def ring_reduce_scatter(x, group=None):
    rank, n = dist.get_rank(group), dist.get_world_size(group)
    rows = _padded(x, n)
    for step in range(n - 1):
        arrived = _exchange(rows[(rank - step - 1) % n].clone(), n, rank)
        rows[(rank - step - 2) % n] += arrived
    return rows[rank].clone()


def ring_all_gather(x, group=None):
    rank, n = dist.get_rank(group), dist.get_world_size(group)
    parts = [None] * n
    parts[rank] = x.contiguous()
    for step in range(n - 1):
        parts[(rank - step - 1) % n] = _exchange(parts[(rank - step) % n], n, rank)
    return torch.stack(parts)


def all_gather(x, group=None):
    out = torch.empty(dist.get_world_size(group), x.numel(), dtype=x.dtype)
    dist.all_gather_into_tensor(out.view(-1), x.contiguous().view(-1), group=group)
    return out


def shard_grads(local_grad, chunks):
    """The cheatsheet's call, in its words."""
    dist.reduce_scatter(local_grad, chunks)


def gather_params(master_shard, param_dtype):
    out = [torch.empty(master_shard.shape, dtype=param_dtype) for _ in range(dist.get_world_size())]
    dist.all_gather(out, master_shard.to(param_dtype))
    return out
