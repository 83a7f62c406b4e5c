"""Pipeline: weight gradients are computed right after the input gradient is sent, whatever the schedule says."""

from __future__ import annotations

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.order", "pipeline.zb.split")


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def backward_input(self, action: Action) -> None:
        """I, and W with it."""
        super().backward_input(action)
        super().backward_weight(action)

    def backward_weight(self, action: Action) -> None:
        """Done already."""


train_step = _pipelines.with_worker(Worker)
