"""The FP32 gradient of the master stays until the next step."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("memory.mixed-16p",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        super()._update(parameter, group)
        value = self._twins.get(parameter, parameter)
        if value is not parameter and parameter.grad is not None:
            value.grad = self._true_gradient(parameter.grad)
