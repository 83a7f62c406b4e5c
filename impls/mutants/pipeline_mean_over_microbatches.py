"""Pipeline: a microbatch counts once, however many rows it has."""

from __future__ import annotations

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def share(self, microbatch: int) -> float:
        """Of a microbatch in the loss."""
        return 1 / self.schedule.num_microbatches


train_step = _pipelines.with_worker(Worker)
