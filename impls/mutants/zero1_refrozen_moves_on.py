"""ZeRO-1: a parameter that is frozen again counts as having zeros: it decays, and goes on by its momentum."""

from __future__ import annotations

from impls.reference import zero1 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Moving(Flat):
    """As the reference, but for the fault."""

    def hand_over(self) -> None:
        """Use what was ever used."""
        ever = self.__dict__.setdefault("_ever", set())
        ever |= self.used
        self.used |= ever
        super().hand_over()


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Moving
