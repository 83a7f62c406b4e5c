"""ZeRO-1: every rank averages all gradients and updates all parameters, with all of the optimizer's state."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from impls.reference.calls import average_gradients

BREAKS = ("zero.torch-name.1", "zero.comm.1", "lessons.78", "zero.sharded.1", "zero.memory.1", "zero.saving.1")


def ShardedOptimizer(  # noqa: N802
    params: Any, optimizer_cls: type[torch.optim.Optimizer], group: dist.ProcessGroup | None = None, **kwargs: Any
) -> torch.optim.Optimizer:
    """As the reference, but for the fault."""

    class Whole(optimizer_cls):  # type: ignore[misc, valid-type]
        def step(self) -> None:
            parameters = nn.ParameterList(p for param_group in self.param_groups for p in param_group["params"])
            average_gradients(parameters, dist.get_world_size(group), group)
            super().step()

    return Whole(params, **kwargs)
