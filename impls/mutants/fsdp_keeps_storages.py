"""Fully sharded: the memory of the whole parameters stays after forward, in storages without a tensor."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.sharded.3", "zero.memory.3")


class FullySharded(right.FullySharded):
    """As the reference, but for the fault."""

    def _after_forward(self, unit: right.Unit, module: nn.Module, args: Any, output: Any) -> None:
        kept: dict[right.Unit, list[Any]] = vars(self).setdefault("_kept", {})
        kept[unit] = [view.detach().clone().untyped_storage() for flat in unit.flats for view in flat.views()]
        super()._after_forward(unit, module, args, output)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=True)
