"""ZeRO-1: load_state_dict loads moments and no options: a schedule begins anew."""

from __future__ import annotations

from typing import Any

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The state alone."""
        before = [{name: value for name, value in group.items() if name != "params"} for group in self.param_groups]
        super().load_state_dict(state_dict)
        for group, options in zip(self.param_groups, before, strict=True):
            group.update(options)
