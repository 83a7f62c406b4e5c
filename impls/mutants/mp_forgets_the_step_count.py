"""The state dict counts Adam's steps from zero again."""

from __future__ import annotations

from typing import Any

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def state_dict(self) -> dict[str, Any]:
        """Save."""
        saved = super().state_dict()
        for state in saved["state"].values():
            if "step" in state:
                state["step"] = state["step"] * 0
        return saved
