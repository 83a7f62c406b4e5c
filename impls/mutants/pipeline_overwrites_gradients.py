"""Pipeline: gradients of the step before are overwritten."""

from __future__ import annotations

from collections.abc import Sequence

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def work(self, actions: Sequence[Action]) -> None:
        """All actions, from nothing."""
        for module in self.modules.values():
            module.zero_grad()
        super().work(actions)


train_step = _pipelines.with_worker(Worker)
