"""Fully sharded: one forward pass is remembered; of two before a backward the first is not reduced."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class FullySharded(right.FullySharded):
    """As the reference, but for the fault."""

    def _come_to(self, call: right.Call) -> list[right.Call]:
        if call.made_in is not vars(self).get("_latest", call.made_in):
            raise RuntimeError("the forward pass before the last is forgotten")
        return super()._come_to(call)

    def _start_pass(self) -> None:
        super()._start_pass()
        if torch.is_grad_enabled():
            self._latest = self._pass


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=True)
