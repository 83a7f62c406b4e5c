"""ZeRO-1: load_state_dict brings back the moments of the first parameter group; the others begin anew."""

from __future__ import annotations

from typing import Any

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """State of the numbers that the first group has."""
        count = len(state_dict["param_groups"][0]["params"])
        state = {number: state for number, state in state_dict["state"].items() if number < count}
        super().load_state_dict({**state_dict, "state": state})
