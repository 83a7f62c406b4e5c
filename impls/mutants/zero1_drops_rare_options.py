"""ZeRO-1: only lr, momentum, weight decay and betas reach the optimizer; eps, nesterov, amsgrad and others are lost."""

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
        known = {name: kwargs[name] for name in ("lr", "momentum", "weight_decay", "betas") if name in kwargs}
        super().__init__(params, optimizer_cls, group, **known)
