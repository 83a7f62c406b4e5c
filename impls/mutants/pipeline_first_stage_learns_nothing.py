"""Pipeline: the input of the second stage wants no gradient, so that the first gets none."""

from __future__ import annotations

from torch import Tensor

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def arrived(self, action: Action) -> list[Tensor | None]:
        """Of stage 1, detached."""
        found = super().arrived(action)
        return [None if t is None else t.detach() for t in found] if action.stage == 1 else found


train_step = _pipelines.with_worker(Worker)
