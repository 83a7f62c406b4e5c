"""Fully sharded: what a forward pass without gradients has gathered stays, and is stale after the next step."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right
from impls.reference.unit import Unit

BREAKS = ("zero.equivalence", "zero.sharded.3")


class Kept(Unit):
    """As the reference, but for the fault."""

    is_kept = False

    def release(self) -> None:
        """Free the parameters, unless an evaluation wanted them."""
        if not self.is_kept:
            super().release()


class Faulty(right.FullySharded):
    """As the reference, but for the fault."""

    def __init__(
        self, module: nn.Module, group: dist.ProcessGroup | None, reshard_after_forward: bool, prefetch: bool
    ) -> None:
        super().__init__(module, group, reshard_after_forward, prefetch)
        for unit in self._units:
            unit.__class__ = Kept

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Once without gradients, and everything stays."""
        for unit in self._units:
            unit.is_kept |= not torch.is_grad_enabled()
        return super().forward(*args, **kwargs)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return Faulty(module, group, reshard_after_forward, prefetch=True)
