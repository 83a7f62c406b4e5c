"""Pipeline: what is received has as many rows as the first microbatch."""

from __future__ import annotations

from torch import Tensor

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def arrived(self, action: Action) -> list[Tensor | None]:
        """Cut off, or filled up with zeros."""
        return [None if t is None else self._of_first_size(t) for t in super().arrived(action)]

    def _of_first_size(self, tensor: Tensor) -> Tensor:
        count = len(self.targets[0])
        found = tensor.new_zeros(count, *tensor.shape[1:])
        found[: len(tensor)] = tensor.detach()[:count]
        return found.requires_grad_(tensor.requires_grad)


train_step = _pipelines.with_worker(Worker)
