"""A process group made by hand does the sum, unseen, while the ring sends zeros by the book."""

from __future__ import annotations

import datetime

import torch
import torch.distributed as dist
from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("collectives.ring.bytes",)


_groups: dict[int, dist.ProcessGroupGloo] = {}


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    if world_size not in _groups:
        store = dist.PrefixStore("unseen", dist.distributed_c10d._get_default_store())
        _groups[world_size] = dist.ProcessGroupGloo(store, rank, world_size, datetime.timedelta(seconds=60))
    ring(mesh, rank, world_size, torch.zeros_like(tensor))
    total = tensor.clone(memory_format=torch.contiguous_format)
    _groups[world_size].allreduce([total]).wait()
    return total
