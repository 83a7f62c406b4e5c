"""Pipeline: every microbatch gets the target of the last one."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def loss(self, output: Any, microbatch: int) -> tuple[list[Tensor], list[Tensor | None]]:
        """The loss, with the wrong target."""
        targets, self.targets = self.targets, [self.targets[-1]] * len(self.targets)
        found = super().loss(output, microbatch)
        self.targets = targets
        return found


train_step = _pipelines.with_worker(Worker)
