"""A resumed training begins with the first loss scale again."""

from __future__ import annotations

from typing import Any

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load."""
        first = self.loss_scale
        super().load_state_dict(state_dict)
        self.loss_scale = first
