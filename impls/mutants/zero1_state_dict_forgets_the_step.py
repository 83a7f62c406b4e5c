"""ZeRO-1: a resumed Adam counts its steps from 0 again, and corrects its moments as if they were new."""

from __future__ import annotations

from typing import Any

import torch

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def state_dict(self) -> dict[str, Any]:
        """Everything but the count of steps."""
        whole = super().state_dict()
        for state in whole["state"].values():
            if "step" in state:
                state["step"] = torch.zeros_like(state["step"])
        return whole
