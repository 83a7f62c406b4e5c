"""ZeRO-2: the parameter that opens a new bucket, because the one before is full, is lost."""

from __future__ import annotations

from impls.reference import zero2 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _update(self, flat: Flat) -> None:
        if any(self._param_group[flat] is self._param_group[other] for other in self._flats[: self._flats.index(flat)]):
            flat.used = {piece for piece in flat.used if piece.parameter is not flat.parameters[0]}
        super()._update(flat)
