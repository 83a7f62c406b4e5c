"""ZeRO-2: a second backward reduces the gradients of the first once more, and adds them again."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import zero2 as right
from impls.reference.flat import Flat

BREAKS = ("zero.equivalence",)


class Again(Flat):
    """As the reference, but for the fault."""

    def reduce(self, mesh: Mesh) -> None:
        """Keep what was reduced among what is to be reduced."""
        kept = None if self._incoming is None else self._incoming.clone()
        super().reduce(mesh)
        if kept is not None:
            self._incoming = kept

    def take(self, parameter: Tensor) -> None:
        """On top of what was there before."""
        if self._incoming is not None:
            self._taken.add(parameter)
        super().take(parameter)
        self._taken.add(parameter)


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        super()._lay_out()
        for flat in self._flats:
            flat.__class__ = Again
