"""ZeRO-1: the state dict of 16-bit parameters is without masters: a resumed run starts from rounded ones."""

from __future__ import annotations

from typing import Any

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def state_dict(self) -> dict[str, Any]:
        """Leave the masters out."""
        whole = super().state_dict()
        whole.pop("master", None)
        return whole
