"""A rank lets the gradients of all parameters but every N-th go once they are averaged."""

from __future__ import annotations

import torch.distributed as dist

from impls.reference import data_parallel as right

BREAKS = ("zero.sharded.ddp", "zero.memory.ddp", "zero.saving.ddp")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def sync_grads(self) -> None:
        """As the reference, but for the fault."""
        super().sync_grads()
        for position, parameter in enumerate(self._bucket_of):
            if position % self.world_size != dist.get_rank(self._group):
                parameter.grad = None
