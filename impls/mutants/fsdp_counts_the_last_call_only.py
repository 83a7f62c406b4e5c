"""Fully sharded: of a unit that is called twice only one call's gradient is kept."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right
from impls.reference.unit import Gradients

BREAKS = ("zero.equivalence",)


class Faulty(right.FullySharded):
    """As the reference, but for the fault."""

    def _finish(self, call: right.Call, gradients: Gradients) -> Gradients:
        found = super()._finish(call, gradients)
        is_first = next(other for other in call.made_in.calls if other.unit is call.unit) is call
        is_only = sum(other.unit is call.unit for other in call.made_in.calls) == 1
        return found if is_only or not is_first else [None] * len(found)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return Faulty(module, group, reshard_after_forward, prefetch=True)
