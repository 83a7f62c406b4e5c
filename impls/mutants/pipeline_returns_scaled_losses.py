"""Pipeline: the losses that are returned are divided by the number of microbatches."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def loss(self, output: Any, microbatch: int) -> tuple[list[Tensor], list[Tensor | None]]:
        """The loss, its figure divided."""
        found = super().loss(output, microbatch)
        self.losses[microbatch] = self.losses[microbatch] / len(self.targets)
        return found


train_step = _pipelines.with_worker(Worker)
