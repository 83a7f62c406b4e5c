"""ZeRO-1: it flattens parameters with view(), which raises for those that are not contiguous."""

from __future__ import annotations

from typing import Any

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Look at the parameters as vectors."""
        param_group["params"] = list(param_group["params"])
        for parameter in param_group["params"]:
            parameter.view(-1)
        super().add_param_group(param_group)
