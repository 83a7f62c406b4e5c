"""An overflow does not begin the count of good steps anew."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _lower_scale(self) -> None:
        good_steps = self.good_steps
        super()._lower_scale()
        self.good_steps = good_steps
