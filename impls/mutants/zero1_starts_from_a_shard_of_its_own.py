"""ZeRO-1: the shard is copied when the optimizer is built; weights that are loaded into the module later are lost."""

from __future__ import annotations

from typing import Any

import torch

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def __init__(self, params: Any, optimizer_cls: type[torch.optim.Optimizer], **kwargs: Any) -> None:
        super().__init__(params, optimizer_cls, **kwargs)
        self._early = {flat: flat.shard.clone() for flat in self._flats}

    def _update(self, flat: Flat) -> None:
        flat.shard.copy_(self._early.pop(flat, flat.shard))
        super()._update(flat)
