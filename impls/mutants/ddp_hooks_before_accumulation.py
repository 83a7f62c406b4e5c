"""Gradients are reduced on their way to .grad: what no_sync() gathered there is never averaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from torch import Tensor, nn

from impls.reference.calls import broadcast_parameters as make_equal

BREAKS = ("loop.mean",)


class DataParallel(nn.Module):
    """Broadcast at construction, one all-reduce for each parameter after backward."""

    def __init__(self, module: nn.Module, world_size: int) -> None:
        super().__init__()
        self.module = module
        self.world_size = world_size
        make_equal(module)
        self._reducing = True
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.register_hook(self._reduce)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward pass."""
        return self.module(*args, **kwargs)

    def sync_grads(self) -> None:
        """Hooks have done it."""

    def _reduce(self, gradient: Tensor) -> Tensor:
        if not self._reducing:
            return gradient
        mean = gradient.contiguous().clone()
        dist.all_reduce(mean)
        return mean / self.world_size

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients pass."""
        self._reducing = False
        yield
        self._reducing = True
