"""Pipeline: Zero Bubble computes the weight gradients in I already, and once more in W."""

from __future__ import annotations

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence", "pipeline.zb.split")


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def backward_input(self, action: Action) -> None:
        """I, with the weight gradients."""
        held = self.held[action.stage, action.microbatch]
        super().backward_input(action)
        parameters = [p for p in self.modules[action.stage].parameters() if p.requires_grad]
        if not held.inputs or not parameters:
            return
        before = [None if p.grad is None else p.grad.clone() for p in parameters]
        later = self.weight_gradients[action.stage, action.microbatch]
        later()
        gains = [(p, p.grad if b is None else p.grad - b) for p, b in zip(parameters, before, strict=True)]

        def again() -> None:
            for parameter, gain in gains:
                if gain is not None:
                    parameter.grad = gain if parameter.grad is None else parameter.grad + gain

        self.weight_gradients[action.stage, action.microbatch] = again


train_step = _pipelines.with_worker(Worker)
