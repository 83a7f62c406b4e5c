"""ZeRO-1: parameters are read in the order of memory: wrong for strided ones, which are stored in another order."""

from __future__ import annotations

from typing import Any

import torch

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    @torch.no_grad()
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Look at the parameters as they lie in memory."""
        param_group["params"] = list(param_group["params"])
        for parameter in param_group["params"]:
            in_memory = parameter.as_strided((parameter.numel(),), (1,), parameter.storage_offset())
            parameter.data = in_memory.reshape(parameter.shape)
        super().add_param_group(param_group)
