"""ZeRO-1: a step gives all ranks rank 0's buffers as well."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def __init__(
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        module: nn.Module,
        group: dist.ProcessGroup | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(params, optimizer_cls, group, **kwargs)
        self._buffers = list(module.buffers())

    def _end_step(self) -> None:
        super()._end_step()
        for buffer in self._buffers:
            dist.broadcast(buffer, src=0, group=self._group)
