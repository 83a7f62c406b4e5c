"""Pipeline: Zero Bubble's W makes no gradients of biases."""

from __future__ import annotations

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence", "pipeline.zb.split")


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def backward_weight(self, action: Action) -> None:
        """W, after which biases are as before."""
        biases = [p for name, p in self.modules[action.stage].named_parameters() if name.endswith("bias")]
        before = [None if p.grad is None else p.grad.clone() for p in biases]
        super().backward_weight(action)
        for parameter, gradient in zip(biases, before, strict=True):
            parameter.grad = gradient


train_step = _pipelines.with_worker(Worker)
