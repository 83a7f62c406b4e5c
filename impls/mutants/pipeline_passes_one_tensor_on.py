"""Pipeline: of several tensors at a boundary only the first is handed to the next stage."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def arrived(self, action: Action) -> list[Tensor | None]:
        """The first; gradients are sent for all, as the stage before expects."""
        found = super().arrived(action)
        vars(self).setdefault("num_came", {})[action.stage, action.microbatch] = len(found)
        return found[:1]

    def give(self, action: Action, gradients: Sequence[Tensor | None]) -> None:
        """With nothing for the dropped ones."""
        missing = vars(self).get("num_came", {}).get((action.stage, action.microbatch), 0) - len(gradients)
        super().give(action, [*gradients, *[None] * missing])


train_step = _pipelines.with_worker(Worker)
