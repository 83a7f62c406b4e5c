"""Each rank asks its own gradients alone whether to leave the step out."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _overflows_anywhere(self) -> bool:
        return not all(grad.isfinite().all() for grad in self._gradients())
