"""Pipeline: Zero Bubble computes the gradients of the weights first, and then that of the input."""

from __future__ import annotations

import torch

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.order", "pipeline.zb.split")


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def backward_input(self, action: Action) -> None:
        """W before I."""
        held = self.held[action.stage, action.microbatch]
        gradients = self.gradients(held, action)
        roots = [
            (edge, g) for edge, g in zip(held.outputs, gradients, strict=True) if edge is not None and g is not None
        ]
        weights = [p for p in self.modules[action.stage].parameters() if p.requires_grad]
        if roots and weights:
            ends = [edge for edge, _ in roots], [gradient for _, gradient in roots]
            torch.autograd.backward(*ends, inputs=weights, retain_graph=True)
        self.held.pop((action.stage, action.microbatch))
        found, _ = right.backward_input(held.outputs, gradients, held.inputs)
        self.give(action, found)

    def backward_weight(self, action: Action) -> None:
        """Done already."""


train_step = _pipelines.with_worker(Worker)
