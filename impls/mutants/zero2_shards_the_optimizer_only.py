"""ZeRO-2: what is called so is ZeRO-1, and whole gradients lie there until step()."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("zero.sharded.2", "zero.memory.2", "zero.saving.2")


class Zero2Optimizer(right.ShardedOptimizer):
    """As the reference's ZeRO-1."""
