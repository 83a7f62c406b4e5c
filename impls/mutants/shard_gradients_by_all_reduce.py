"""The gradients are all-reduced, and each rank cuts its shard out of the whole sum."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from impls.reference import *  # noqa: F403

BREAKS = ("faq.why-reduce-scatter",)


def shard_gradients(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """This rank's part of the summed gradient."""
    total = tensor.flatten().clone()
    dist.all_reduce(total, group=group)
    return total.tensor_split(dist.get_world_size(group))[dist.get_rank(group)].clone()
