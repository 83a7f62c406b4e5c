"""The FP32 copy is made in each step from the rounded parameter, although a master was asked for."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence", "memory.mixed-16p")


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    @property
    def _has_master(self) -> bool:
        return False

    @_has_master.setter
    def _has_master(self, asked: bool) -> None:
        pass
