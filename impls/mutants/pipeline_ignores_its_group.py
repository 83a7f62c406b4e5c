"""Pipeline: messages go to ranks of the world, also where some of them are a pipeline of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch.distributed as dist
from torch import Tensor, nn

from impls.reference.pipeline.execute import train_step as right

BREAKS = ("pipeline.equivalence",)


def train_step(
    stage: nn.Module | Sequence[nn.Module],
    microbatches: Sequence[Any],
    targets: Sequence[Any],
    loss_fn: Callable[[Any, Any], Tensor],
    schedule: str = "1f1b",
    group: dist.ProcessGroup | None = None,
) -> list[Tensor]:
    """As the reference, but for the fault."""
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    return right(stage, microbatches, targets, loss_fn, schedule, rank, world_size)
