"""The optimizer works on the 16-bit parameters themselves, moments included."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence", "memory.mixed-16p")


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        assert parameter.grad is not None
        parameter.grad = self._true_gradient(parameter.grad).to(parameter.dtype)
        self._inner.param_groups = [{**group, "params": [parameter]}]
        self._inner.step()
