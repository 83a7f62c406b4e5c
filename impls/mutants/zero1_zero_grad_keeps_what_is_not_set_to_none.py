"""ZeRO-1: zero_grad(set_to_none=False) leaves the gradients as they are."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget, but write no zeros."""
        if set_to_none:
            super().zero_grad()
