"""Fully sharded: frozen shards become parameters that learn, with a gradient of zero: they decay."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class Faulty(right.FullySharded):
    """As the reference, but for the fault."""

    def _end_backward(self) -> None:
        super()._end_backward()
        for unit in self._units:
            for piece in (piece for flat in unit.flats if not flat.trainable for piece in flat.pieces):
                piece.requires_grad_(True)
                piece.grad = torch.zeros_like(piece)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return Faulty(module, group, reshard_after_forward, prefetch=True)
