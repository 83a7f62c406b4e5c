"""Fully sharded: a rank's shard is a view of the whole unit's memory, which stays for its sake."""

from __future__ import annotations

from typing import Any

from impls.reference import fsdp as right
from impls.reference.unit import FlatParameter

BREAKS = ("zero.sharded.3", "zero.memory.3", "zero.saving.3", "strategies.fsdp.partition", "strategies.fsdp.memory")


def fully_shard(
    module: Any, group: Any = None, reshard_after_forward: bool = True, prefetch: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    sharded = right.fully_shard(module, group, reshard_after_forward, prefetch)
    for unit in sharded._units:
        for flat in unit.flats:
            _keep_whole(flat)
    return sharded


def _keep_whole(flat: FlatParameter) -> None:
    size = flat._shard.numel()
    own = flat._shard.new_zeros(flat.whole.shape)[flat._mesh.rank * size :][:size]
    flat._shard = own.copy_(flat._shard)
    for piece, view in zip(flat.pieces, flat._pieces_of(flat._shard), strict=True):
        piece.data = view
