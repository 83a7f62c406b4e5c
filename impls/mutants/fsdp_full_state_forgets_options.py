"""Fully sharded: load_full_state() leaves the options of the optimizer's groups as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class FullySharded(right.FullySharded):
    """As the reference, but for the fault."""

    def load_full_state(self, state: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> None:
        """As the reference, but for the fault."""
        before = [dict(group) for group in optimizer.param_groups]
        super().load_full_state(state, optimizer)
        for group, options in zip(optimizer.param_groups, before, strict=True):
            group.update(options)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=True)
