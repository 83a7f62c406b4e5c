"""Pipeline: what stages hand on stays in a list, also when the step is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.1f1b.memory",)

_kept: list[Any] = []


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def forward(self, action: Action) -> None:
        """The forward; what is sent on stays in a list."""
        give = self.post.give

        def keep(signal: Any, tensors: Sequence[Tensor | None]) -> None:
            _kept.append(tensors)
            give(signal, tensors)

        self.post.give = keep  # type: ignore[method-assign]
        super().forward(action)
        self.post.give = give  # type: ignore[method-assign]


train_step = _pipelines.with_worker(Worker)
