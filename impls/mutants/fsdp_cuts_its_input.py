"""Fully sharded: the input is detached, and what lies before the module gets no gradient."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import Tensor, nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class Faulty(right.FullySharded):
    """As the reference, but for the fault."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The pass of an input that remembers nothing."""
        inputs = [value.detach() if isinstance(value, Tensor) else value for value in args]
        return super().forward(*inputs, **kwargs)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return Faulty(module, group, reshard_after_forward, prefetch=True)
