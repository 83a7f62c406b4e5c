"""ZeRO-2: where there are several buckets, the last one is not reduced."""

from __future__ import annotations

from impls.reference import zero2 as right

BREAKS = ("zero.equivalence",)


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _reduce_next(self) -> None:
        flat = self._flats[self._num_reduced]
        if len(self._flats) > 1 and flat is self._flats[-1]:
            flat.forget()
            self._num_reduced += 1
        else:
            super()._reduce_next()
