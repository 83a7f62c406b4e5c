"""Gradients are flattened by reshape(-1) and averaged there: for one that is stored transposed, that is a copy."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from impls.reference.calls import broadcast_parameters

BREAKS = ("loop.mean",)


class DataParallel(nn.Module):
    """One all-reduce for each parameter, after backward."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        broadcast_parameters(module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward pass."""
        return self.module(*args, **kwargs)

    @torch.no_grad()
    def sync_grads(self) -> None:
        """Average, with a fault."""
        for parameter in self.module.parameters():
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                flat = parameter.grad.reshape(-1)
                dist.all_reduce(flat)
                flat /= dist.get_world_size()
