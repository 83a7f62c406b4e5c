"""The state dict has masters and options only."""

from __future__ import annotations

from typing import Any

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def state_dict(self) -> dict[str, Any]:
        """Save."""
        return {**super().state_dict(), "state": {}}
