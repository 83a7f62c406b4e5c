"""Pipeline: stages are in evaluation mode during the step, without dropout, and BatchNorm by its running figures."""

from __future__ import annotations

from collections.abc import Sequence

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def work(self, actions: Sequence[Action]) -> None:
        """All actions in evaluation mode; afterwards the mode is what it was."""
        modes = {module: module.training for module in self.modules.values()}
        for module in modes:
            module.eval()
        super().work(actions)
        for module, training in modes.items():
            module.train(training)


train_step = _pipelines.with_worker(Worker)
