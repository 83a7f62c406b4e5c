"""Options other than the rate that change between steps do not reach the optimizer."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        first = vars(self).setdefault("_first", {}).setdefault(id(group), dict(group))
        super()._update(parameter, {**first, "lr": group["lr"]})
