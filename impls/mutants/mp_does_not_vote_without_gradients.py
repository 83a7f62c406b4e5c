"""A rank that has no gradient leaves the vote on overflow out, and the others wait for it."""

from __future__ import annotations

from impls.reference import mixed_precision as right
from impls.reference.fsdp import fully_shard

__all__ = ["MixedPrecision", "fully_shard"]
BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _overflows_anywhere(self) -> bool:
        return bool(list(self._gradients())) and super()._overflows_anywhere()
