"""ZeRO-1: gradients are all-reduced before they are reduce-scattered: right, at twice the traffic."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import zero1 as right
from impls.reference.calls import average_gradients

BREAKS = ("zero.comm.1", "collectives.reduce-scatter.use")


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _reduce_gradients(self) -> None:
        parameters = nn.ParameterList(p for param_group in self.param_groups for p in param_group["params"])
        average_gradients(parameters, dist.get_world_size(self._group), self._group)
        super()._reduce_gradients()
