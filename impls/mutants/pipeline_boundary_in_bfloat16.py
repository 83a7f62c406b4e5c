"""Pipeline: activations pass boundaries in bfloat16."""

from __future__ import annotations

import torch
from torch import Tensor

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence",)


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def arrived(self, action: Action) -> list[Tensor | None]:
        """Rounded."""
        return [None if t is None else _rounded(t) for t in super().arrived(action)]


def _rounded(tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point():
        return tensor
    return tensor.detach().to(torch.bfloat16).to(tensor.dtype).requires_grad_(tensor.requires_grad)


train_step = _pipelines.with_worker(Worker)
