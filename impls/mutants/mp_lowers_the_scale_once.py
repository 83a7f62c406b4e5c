"""Of overflows in a row only the first lowers the scale."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    _was_bad = False

    def step(self) -> None:  # type: ignore[override]
        """As the reference, but for the fault."""
        scale = self.loss_scale
        super().step()
        is_bad = self.loss_scale < scale
        if is_bad and self._was_bad:
            self.loss_scale = scale
        self._was_bad = is_bad
