"""Fully sharded: where no rank has a gradient it is zeros, so that the parameter decays."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class FullySharded(right.FullySharded):
    """As the reference, but for the fault."""

    def _end_backward(self) -> None:
        super()._end_backward()
        for piece in self.parameters():
            if piece.requires_grad and piece.grad is None:
                piece.grad = torch.zeros_like(piece)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=True)
