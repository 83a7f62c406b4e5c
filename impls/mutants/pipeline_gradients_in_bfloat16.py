"""Pipeline: gradients pass boundaries in bfloat16."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def give(self, action: Action, gradients: Sequence[Tensor | None]) -> None:
        """Rounded."""
        super().give(action, [None if g is None else g.bfloat16().to(g.dtype) for g in gradients])


train_step = _pipelines.with_worker(Worker)
