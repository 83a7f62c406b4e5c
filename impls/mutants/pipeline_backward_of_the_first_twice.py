"""Pipeline: the backward of microbatch 0 is done twice on the last stage."""

from __future__ import annotations

import torch

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence", "pipeline.order")


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def backward(self, action: Action) -> None:
        """B, and again."""
        if action.microbatch == 0 and action.stage == self.schedule.num_stages - 1:
            held = self.held[action.stage, action.microbatch]
            gradients = self.gradients(held, action)
            torch.autograd.backward(held.outputs, gradients, retain_graph=True)
            for tensor in held.inputs:
                tensor.grad = None
        super().backward(action)


train_step = _pipelines.with_worker(Worker)
