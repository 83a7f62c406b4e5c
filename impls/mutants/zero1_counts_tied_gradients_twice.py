"""ZeRO-1: a tied parameter is laid out under each of its names, and its gradient counts as often."""

from __future__ import annotations

from collections import Counter
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
        self._names = Counter(parameter for _, parameter in module.named_parameters(remove_duplicate=False))

    def _reduce_gradients(self) -> None:
        for parameter, count in self._names.items():
            if parameter.grad is not None:
                parameter.grad *= count
        super()._reduce_gradients()
