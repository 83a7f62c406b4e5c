"""Pipeline: gradients are divided by the number of microbatches at each stage."""

from __future__ import annotations

from torch import Tensor

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def gradients(self, held: right.Held, action: Action) -> list[Tensor | None]:
        """Divided once more at each boundary."""
        found = super().gradients(held, action)
        if action.stage == self.schedule.num_stages - 1:
            return found
        return [None if g is None else g / self.schedule.num_microbatches for g in found]


train_step = _pipelines.with_worker(Worker)
