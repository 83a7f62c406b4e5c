"""Fully sharded: each forward pass clears the gradients, so that only the last microbatch counts."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class Faulty(right.FullySharded):
    """As the reference, but for the fault."""

    def _start_pass(self) -> None:
        super()._start_pass()
        if torch.is_grad_enabled():
            for piece in self.parameters():
                piece.grad = None


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return Faulty(module, group, reshard_after_forward, prefetch=True)
