"""Only rank r keeps the gradient of parameter r: the gradients are sharded."""

from __future__ import annotations

import torch.distributed as dist

from impls.reference import data_parallel as right

BREAKS = ("strategies.ddp.memory",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def sync_grads(self) -> None:
        """Finish the reduction, and drop what other ranks keep."""
        super().sync_grads()
        for index, parameter in enumerate(self.module.parameters()):
            if self._in_step and index % self.world_size != dist.get_rank():
                parameter.grad = None
