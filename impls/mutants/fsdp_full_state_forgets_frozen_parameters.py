"""Fully sharded: load_full_state() leaves frozen parameters as the fresh module has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class FullySharded(right.FullySharded):
    """As the reference, but for the fault."""

    def load_full_state(self, state: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> None:
        """As the reference, but for the fault."""
        own = self.full_parameters()
        still = [flat for unit in self._units for flat in unit.flats if not flat.trainable]
        kept = {name: own[name] for flat in still for place in flat.places for name in place.names}
        super().load_full_state({**state, "parameters": {**state["parameters"], **kept}}, optimizer)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=True)
