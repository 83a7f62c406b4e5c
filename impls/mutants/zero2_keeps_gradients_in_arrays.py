"""ZeRO-2: full gradients stay, as numpy arrays."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.reference import zero2 as right

BREAKS = ("zero.sharded.2", "zero.memory.2")


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _on_gradient(self, parameter: Tensor) -> None:
        arrays: dict[Tensor, Any] = vars(self).setdefault("_arrays", {})
        if parameter.grad is not None:
            arrays[parameter] = parameter.grad.float().numpy().copy()
        super()._on_gradient(parameter)
