"""The collectives as torch.distributed spells them, `(tensor, group)`, on the mesh of that group.

Which all-reduce is faster is a matter of size: the ring moves the fewest bytes, the tree takes the fewest steps. The
place where they cross depends on the links; about 1 MB is usual (Thakur et al. 2005, section 4.5, has measurements).
"""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from impls.mesh import GlooMesh
from impls.reference.collectives import (
    ring_allgather,
    ring_allreduce,
    ring_reduce_scatter,
    tree_allreduce,
    tree_broadcast,
)

RING_FROM_BYTES = 1_000_000


def all_reduce(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """Sum over the ranks of `group`, shape of `tensor`."""
    mesh = GlooMesh(group)
    algorithm = ring_allreduce if tensor.nbytes >= RING_FROM_BYTES else tree_allreduce
    return algorithm(mesh, mesh.rank, mesh.world_size, tensor)


def all_gather(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """All ranks' tensors, of any sizes, joined flat in rank order. [sum of numel]"""
    mesh = GlooMesh(group)
    return ring_allgather(mesh, mesh.rank, mesh.world_size, tensor)


def reduce_scatter(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """This rank's part of the flat sum, cut as ``torch.tensor_split`` cuts it. [about numel/N]"""
    mesh = GlooMesh(group)
    return ring_reduce_scatter(mesh, mesh.rank, mesh.world_size, tensor)


def broadcast(tensor: Tensor, src: int = 0, group: dist.ProcessGroup | None = None) -> Tensor:
    """The tensor of rank `src` of the group on all its ranks, shape of `tensor`."""
    mesh = GlooMesh(group)
    return tree_broadcast(mesh, mesh.rank, mesh.world_size, tensor, src)
