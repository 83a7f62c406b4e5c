"""A right pipeline whose hand-overs are broadcasts in groups of two ranks, with their shapes as pickled objects.

All ranks get to know the losses in the end, and meet at a barrier.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from impls.mutants import _lockstep_pipeline as base


class _Pairs(base.Hands):
    def __init__(self, rank: int, world_size: int) -> None:
        super().__init__(rank)
        self._groups = [dist.new_group([left, left + 1]) for left in range(world_size - 1)]

    def pass_on(self, tensor: Tensor | None, src: int, dst: int) -> Tensor | None:
        if self.rank not in (src, dst):
            return None
        group = self._groups[min(src, dst)]
        shape = [None if tensor is None else tuple(tensor.shape)]
        dist.broadcast_object_list(shape, src, group=group)
        message = torch.empty(shape[0]) if tensor is None else tensor.contiguous()  # type: ignore[arg-type]
        dist.broadcast(message, src, group=group)
        return message if self.rank == dst else None


def train_step(stage: Any, microbatches: Any, targets: Any, loss_fn: Any, rank: int, world_size: int) -> list[Tensor]:
    """GPipe."""
    hands = _Pairs(rank, world_size)
    losses = base.train_step(stage, microbatches, targets, loss_fn, rank, world_size, hands)
    everywhere: list[Any] = [None] * world_size
    dist.all_gather_object(everywhere, [float(loss) for loss in losses])
    dist.barrier()
    for group in hands._groups:
        dist.destroy_process_group(group)
    return losses
