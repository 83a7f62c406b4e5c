"""Fully sharded: the whole state has the parameters, and nothing of the optimizer's moments."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class Faulty(right.FullySharded):
    """As the reference, but for the fault."""

    def full_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Without the optimizer's state."""
        return super().full_state(optimizer) | {"optimizer": {}}


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return Faulty(module, group, reshard_after_forward, prefetch=True)
