"""Pipeline: the step takes a step of SGD itself."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def work(self, actions: Sequence[Action]) -> None:
        """All actions, and an update that nobody asked for."""
        super().work(actions)
        with torch.no_grad():
            for parameter in (p for module in self.modules.values() for p in module.parameters()):
                if parameter.grad is not None:
                    parameter -= parameter.grad


train_step = _pipelines.with_worker(Worker)
