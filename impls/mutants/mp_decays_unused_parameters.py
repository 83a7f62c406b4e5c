"""A parameter without gradient is updated as if it had one of zero."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def step(self) -> None:
        """Update."""
        for parameter in self._parameters():
            if parameter.grad is None:
                parameter.grad = parameter.new_zeros(parameter.shape)
        super().step()
