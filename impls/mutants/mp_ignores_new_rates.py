"""The learning rate of the first step is kept for ever: schedulers change nothing."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        rates: dict[Tensor, float] = vars(self).setdefault("_rates", {})
        super()._update(parameter, {**group, "lr": rates.setdefault(parameter, group["lr"])})
