"""Pipeline: the second stage takes the microbatch itself, not what the first one sent."""

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
        """On stage 1, off by one."""
        found = super().arrived(action)
        if action.stage == 1 and len(found) == 1 and found[0] is not None:
            given = self.microbatches[action.microbatch]
            if given.shape == found[0].shape and given.dtype == found[0].dtype:
                with torch.no_grad():
                    found[0].copy_(given)
        return found


train_step = _pipelines.with_worker(Worker)
