"""On shards, clip_grad_norm_(sharded=True) takes the norm of this rank's."""

from __future__ import annotations

from torch import Tensor

from impls.reference import mixed_precision as right
from impls.reference.fsdp import fully_shard

__all__ = ["MixedPrecision", "fully_shard"]
BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def clip_grad_norm_(self, max_norm: float, sharded: bool = False) -> Tensor:
        """As the reference, but for the fault."""
        return super().clip_grad_norm_(max_norm)
