"""ZeRO-2: full gradients are kept when they have been reduced, beside this rank's shard."""

from __future__ import annotations

from torch import Tensor

from impls.reference import zero2 as right

BREAKS = ("zero.sharded.2", "zero.memory.2", "zero.saving.2")


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def _on_gradient(self, parameter: Tensor) -> None:
        self.__dict__.setdefault("full", {})[parameter] = parameter.grad
        super()._on_gradient(parameter)
