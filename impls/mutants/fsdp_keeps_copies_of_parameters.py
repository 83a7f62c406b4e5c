"""Fully sharded: whole copies of the parameters stay when a unit is released."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = (
    "memory.fsdp-70b",
    "zero.sharded.3",
    "zero.memory.3",
    "zero.saving.3",
    "strategies.fsdp.partition",
    "strategies.fsdp.memory",
    "resists.fsdp-70b-over-80gb",
)


class FullySharded(right.FullySharded):
    """As the reference, but for the fault."""

    def _after_forward(self, unit: right.Unit, module: nn.Module, args: Any, output: Any) -> None:
        copies: dict[right.Unit, list[torch.Tensor]] = vars(self).setdefault("_copies", {})
        copies[unit] = [view.detach().clone() for flat in unit.flats for view in flat.views()]
        super()._after_forward(unit, module, args, output)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=True)
