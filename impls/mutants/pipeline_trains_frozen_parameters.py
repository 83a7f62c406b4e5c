"""Pipeline: parameters that are frozen get gradients."""

from __future__ import annotations

from collections.abc import Sequence

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def work(self, actions: Sequence[Action]) -> None:
        """All actions, with everything set to learn."""
        frozen = [p for module in self.modules.values() for p in module.parameters() if not p.requires_grad]
        for parameter in frozen:
            parameter.requires_grad_(True)
        super().work(actions)
        for parameter in frozen:
            parameter.requires_grad_(False)


train_step = _pipelines.with_worker(Worker)
