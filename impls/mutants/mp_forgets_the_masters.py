"""A resumed training starts from the rounded parameters: the masters are not in the state dict."""

from __future__ import annotations

from typing import Any

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def state_dict(self) -> dict[str, Any]:
        """Save."""
        return {**super().state_dict(), "master": {}}
