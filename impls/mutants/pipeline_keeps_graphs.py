"""Pipeline: backward retains the graph, with all activations, until the step is over."""

from __future__ import annotations

import torch

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.1f1b.memory",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def backward(self, action: Action) -> None:
        """B, after which nothing is freed."""
        held = self.held[action.stage, action.microbatch]
        vars(self).setdefault("kept", []).append(held)
        gradients = self.gradients(held, action)
        roots = [
            (edge, g) for edge, g in zip(held.outputs, gradients, strict=True) if edge is not None and g is not None
        ]
        if roots:
            ends = [edge for edge, _ in roots], [gradient for _, gradient in roots]
            torch.autograd.backward(*ends, retain_graph=True)
        self.give(action, [tensor.grad for tensor in held.inputs])


train_step = _pipelines.with_worker(Worker)
