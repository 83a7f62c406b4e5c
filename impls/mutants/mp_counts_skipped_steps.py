"""Adam's step count goes on in the steps that are left out."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _lower_scale(self) -> None:
        for state in self._inner.state.values():
            if "step" in state:
                state["step"] += 1
        super()._lower_scale()
