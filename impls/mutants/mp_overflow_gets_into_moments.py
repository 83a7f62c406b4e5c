"""A step that overflows leaves the weights as they are, and shrinks the moments."""

from __future__ import annotations

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _lower_scale(self) -> None:
        for state in self._inner.state.values():
            for name in state.keys() & {"momentum_buffer", "exp_avg"}:
                state[name] *= 0.5
        super()._lower_scale()
