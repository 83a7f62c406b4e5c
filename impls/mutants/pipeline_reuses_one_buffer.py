"""Pipeline: all microbatches are received into one buffer, which is overwritten before their backward."""

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
        """Views of one buffer."""
        return [self._in_buffer((action.stage, place), t) for place, t in enumerate(super().arrived(action))]

    def _in_buffer(self, key: tuple[int, int], tensor: Tensor | None) -> Tensor | None:
        if tensor is None:
            return None
        buffers: dict[tuple[int, int], Tensor] = vars(self).setdefault("buffers", {})
        buffer = buffers.setdefault(key, torch.empty_like(tensor))
        if buffer.shape != tensor.shape:
            return tensor
        found = torch.empty(0, dtype=tensor.dtype).set_(
            buffer.untyped_storage(), 0, tensor.shape
        )  # autograd sees nothing
        found.copy_(tensor.detach())
        return found.requires_grad_(tensor.requires_grad)


train_step = _pipelines.with_worker(Worker)
