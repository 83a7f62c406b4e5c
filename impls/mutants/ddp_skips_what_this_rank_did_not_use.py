"""A parameter without gradient on this rank is passed over, also where others have one."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import nn

from impls.reference.calls import broadcast_parameters as make_equal

BREAKS = ("loop.mean", "resists.unused-parameter-deadlock")


class DataParallel(nn.Module):
    """Broadcast at construction, one all-reduce for each parameter after backward."""

    def __init__(self, module: nn.Module, world_size: int) -> None:
        super().__init__()
        self.module = module
        self.world_size = world_size
        make_equal(module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward pass."""
        return self.module(*args, **kwargs)

    def sync_grads(self) -> None:
        """Average the gradients."""
        for parameter in self.module.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad.div_(self.world_size)
