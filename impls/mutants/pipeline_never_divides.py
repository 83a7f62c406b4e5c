"""Pipeline: the gradient is the sum over microbatches."""

from __future__ import annotations

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def share(self, microbatch: int) -> float:
        """Of a microbatch in the loss."""
        return 1.0


train_step = _pipelines.with_worker(Worker)
