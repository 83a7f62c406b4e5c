"""ZeRO-1: all operations are in the default group, whatever group it is given."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def __init__(
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        group: dist.ProcessGroup | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(params, optimizer_cls, None, **kwargs)
