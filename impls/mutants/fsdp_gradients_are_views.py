"""Fully sharded: gradients of shards are views of whole ones, whose memory stays for their sake."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.reference import fsdp as right
from impls.reference.unit import FlatParameter

BREAKS = ("zero.sharded.3", "zero.memory.3", "zero.saving.3", "strategies.fsdp.partition", "strategies.fsdp.memory")


class InWhole(FlatParameter):
    """As the reference, but for the fault."""

    def _pieces_of(self, shard: Tensor) -> list[Tensor]:
        return super()._pieces_of(shard.new_zeros(self.whole.shape)[: shard.numel()].copy_(shard))


def fully_shard(
    module: Any, group: Any = None, reshard_after_forward: bool = True, prefetch: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    sharded = right.fully_shard(module, group, reshard_after_forward, prefetch)
    for unit in sharded._units:
        for flat in unit.flats:
            flat.__class__ = InWhole
    return sharded
