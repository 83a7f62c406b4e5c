"""ZeRO-1: load_state_dict keeps the learning rate that the constructor was given."""

from __future__ import annotations

from typing import Any

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """All but the rates."""
        rates = [group["lr"] for group in self.param_groups]
        super().load_state_dict(state_dict)
        for group, rate in zip(self.param_groups, rates, strict=True):
            group["lr"] = rate
