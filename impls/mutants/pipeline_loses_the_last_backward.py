"""Pipeline: the last microbatch has no backward on the first stage."""

from __future__ import annotations

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence", "pipeline.order")


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def backward(self, action: Action) -> None:
        """B, but for one."""
        held = self.held[action.stage, action.microbatch]
        if action.stage == 0 and action.microbatch == self.schedule.num_microbatches - 1:
            self.gradients(held, action)
        else:
            super().backward(action)


train_step = _pipelines.with_worker(Worker)
