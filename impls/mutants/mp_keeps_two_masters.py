"""The master copy is there twice: the optimizer's, and one to restore it from."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("memory.mixed-16p", "memory.mixed-7b")


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def step(self) -> None:
        """Update."""
        super().step()
        self._spare = [twin.clone() for twin in self._twins.values()] if self._has_master else []
