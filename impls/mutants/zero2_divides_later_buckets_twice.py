"""ZeRO-2: from the second bucket on the mean is divided by N once more."""

from __future__ import annotations

from impls.reference import zero2 as right

BREAKS = ("zero.equivalence",)


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _reduce_next(self) -> None:
        flat = self._flats[self._num_reduced]
        is_first, before = self._num_reduced == 0, flat.gradient
        flat.gradient = None
        super()._reduce_next()
        assert flat.gradient is not None
        if not is_first:
            flat.gradient /= self._mesh.world_size
        if before is not None:
            flat.gradient += before
