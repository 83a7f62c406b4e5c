"""Fully sharded: full_parameters() gives what it gave the first time."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor, nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


class FullySharded(right.FullySharded):
    """As the reference, but for the fault."""

    def full_parameters(self) -> dict[str, Tensor]:
        """As the reference, but for the fault."""
        told: dict[str, Tensor] = vars(self).setdefault("_told", super().full_parameters())
        return told


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    return FullySharded(module, group, reshard_after_forward, prefetch=True)
