"""Fully sharded: the whole gradients of each unit stay alive after the reduce-scatter."""

from __future__ import annotations

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

    def _finish(self, call: right.Call, gradients: right.Gradients) -> right.Gradients:
        whole: dict[right.Unit, list[object]] = vars(self).setdefault("_whole", {})
        whole[call.unit] = [None if gradient is None else gradient.clone() for gradient in gradients]
        return super()._finish(call, gradients)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=True)
