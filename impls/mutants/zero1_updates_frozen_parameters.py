"""ZeRO-1: frozen parameters get a gradient of zero, and so they decay."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class All(right.Flat):
    """As the reference, but for the fault."""

    def hand_over(self) -> None:
        """Every piece has a gradient."""
        self.used.update(self.pieces)
        super().hand_over()


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _lay_out(self) -> None:
        frozen = [p for group in self.param_groups for p in group["params"] if not p.requires_grad]
        for parameter in frozen:
            parameter.requires_grad_(True)
        super()._lay_out()
        for parameter in frozen:
            parameter.requires_grad_(False)
        for flat in self._flats:
            flat.__class__ = All
