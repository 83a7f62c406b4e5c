"""ZeRO-1: it goes through params twice; of model.parameters(), a generator, nothing is left then."""

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
        self._num_parameters = sum(1 for _ in params)
        rest = list(params) or [torch.nn.Parameter(torch.zeros(1))]
        super().__init__(rest, optimizer_cls, group, **kwargs)
