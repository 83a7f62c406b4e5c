"""Parameters are reduced in the order of a set, which is another one on every rank."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from impls.reference.calls import broadcast_parameters as make_equal

BREAKS = ("loop.mean",)


class DataParallel(nn.Module):
    """Broadcast at construction, one all-reduce for each parameter after backward."""

    def __init__(self, module: nn.Module, world_size: int) -> None:
        super().__init__()
        self.module = module
        self.world_size = world_size
        make_equal(module)
        # What iterating over a set of parameters does, made certain: other addresses, another order on every rank.
        order = list(module.parameters())
        turn = dist.get_rank() % len(order)
        self._order = order[turn:] + order[:turn]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward pass."""
        return self.module(*args, **kwargs)

    def sync_grads(self) -> None:
        """Average the gradients."""
        for parameter in self.module.parameters():
            if parameter.grad is None and parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
        for parameter in self._order:
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad.div_(self.world_size)
