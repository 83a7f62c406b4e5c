"""After an overflow the scale stays what it was, and so does the overflow."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _lower_scale(self) -> None:
        self.good_steps = 0
