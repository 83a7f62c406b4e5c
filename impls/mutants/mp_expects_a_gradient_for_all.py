"""Every parameter is expected to have a gradient, frozen ones too."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def step(self) -> None:  # type: ignore[override]
        """As the reference, but for the fault."""
        assert all(parameter.grad.isfinite().numel() for parameter in self._parameters())  # type: ignore[union-attr]
        super().step()
