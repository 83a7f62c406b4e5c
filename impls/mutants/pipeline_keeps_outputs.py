"""Pipeline: outputs of the last stage are kept until the step is over."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right

BREAKS = ("pipeline.1f1b.memory",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def loss(self, output: Any, microbatch: int) -> tuple[list[Tensor], list[Tensor | None]]:
        """The loss; the output stays in a list."""
        vars(self).setdefault("outputs", []).append(output)
        return super().loss(output, microbatch)


train_step = _pipelines.with_worker(Worker)
