"""Pipeline: every forward is done twice, and the first result thrown away: no backward is near that it could be for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.order",)


class Twice(nn.Module):
    """A stage that is called twice."""

    def __init__(self, stage: nn.Module) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, *inputs: Any) -> Any:
        """What the second call returns."""
        self.stage(*inputs)
        return self.stage(*inputs)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def work(self, actions: Sequence[Action]) -> None:
        """All actions, on stages that are called twice."""
        self.modules = {stage: Twice(module) for stage, module in self.modules.items()}
        super().work(actions)


train_step = _pipelines.with_worker(Worker)
