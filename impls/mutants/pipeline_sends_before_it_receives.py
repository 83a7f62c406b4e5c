"""Pipeline: neighbours send to each other and only then receive."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from impls.mutants import _pipelines
from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.equivalence", "pipeline.order")


class Worker(right.Worker):
    """As the reference, but for the fault."""

    def work(self, actions: Sequence[Action]) -> None:
        """All actions, after an exchange of sizes that cannot end."""
        rank, size = dist.get_rank(), torch.tensor([len(self.targets)])
        neighbours = [other for other in (rank - 1, rank + 1) if 0 <= other < dist.get_world_size()]
        for other in neighbours:
            dist.send(size, other)
        for other in neighbours:
            dist.recv(size, other)
        super().work(actions)


train_step = _pipelines.with_worker(Worker)
