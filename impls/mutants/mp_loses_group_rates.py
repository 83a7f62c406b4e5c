"""Every parameter group gets the learning rate of the first."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        super()._update(parameter, {**group, "lr": self.param_groups[0]["lr"]})
