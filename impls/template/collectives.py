"""Collectives from ``mesh.send(dst, tensor)`` and ``mesh.recv(src) -> tensor``, or over torch.distributed.

A send returns before its message is taken. All ranks call a function at once; leave the input as it is, or work in
place and return None.
"""

from __future__ import annotations

import torch
from torch import Tensor

from impls.mesh import Mesh

RECV_TIMEOUT_S: float | None = None  # seconds that your queue mesh waits for a silent peer


def queue_mesh(world_size: int) -> list[Mesh]:
    """One end per rank, for threads of one process; an end has rank, world_size, send and recv."""
    raise NotImplementedError


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks, in 2(N-1) steps that move 2T(N-1)/N bytes per rank."""
    raise NotImplementedError


def tree_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks, in 2 ceil(log2 N) steps up and down a binomial tree."""
    raise NotImplementedError


def ring_allgather(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """All ranks' tensors joined flat in rank order, in N-1 steps."""
    raise NotImplementedError


def ring_reduce_scatter(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """This rank's part of the flat sum, in N-1 steps; the parts in rank order are the whole sum."""
    raise NotImplementedError


def tree_broadcast(mesh: Mesh, rank: int, world_size: int, tensor: Tensor, src: int) -> Tensor:
    """Rank `src`'s tensor on every rank, in ceil(log2 N) steps."""
    raise NotImplementedError


def all_reduce(tensor: Tensor, group: torch.distributed.ProcessGroup | None) -> Tensor:
    """Sum over the ranks of `group`, as you like."""
    raise NotImplementedError


def all_gather(tensor: Tensor, group: torch.distributed.ProcessGroup | None) -> Tensor:
    """All ranks' tensors in rank order, as you like; a list of them is fine."""
    raise NotImplementedError


def reduce_scatter(tensor: Tensor, group: torch.distributed.ProcessGroup | None) -> Tensor:
    """This rank's part of the flat sum, as you like."""
    raise NotImplementedError


def broadcast(tensor: Tensor, src: int, group: torch.distributed.ProcessGroup | None) -> Tensor:
    """Rank `src`'s tensor on every rank, as you like."""
    raise NotImplementedError


def shard_gradients(tensor: Tensor, group: torch.distributed.ProcessGroup | None) -> Tensor:
    """ZeRO-1: this rank's part of the summed flat gradient; or ``shard_gradients(local_grad, chunks)``."""
    raise NotImplementedError


def gather_parameters(master_shard: Tensor, dtype: torch.dtype, group: torch.distributed.ProcessGroup | None) -> Tensor:
    """ZeRO-1: all ranks' shards, cast to `dtype` before they travel."""
    raise NotImplementedError
