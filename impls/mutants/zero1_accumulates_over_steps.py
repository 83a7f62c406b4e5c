"""ZeRO-1: zero_grad() leaves the gradients where they are."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget nothing."""
