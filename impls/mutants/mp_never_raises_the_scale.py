"""The scale only ever falls."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _count_good_step(self) -> None:
        self.good_steps += 1
