"""After a load the good steps are counted from 0."""

from __future__ import annotations

from typing import Any

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As the reference, but for the fault."""
        super().load_state_dict({**state_dict, "good_steps": 0})
