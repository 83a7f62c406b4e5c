"""Pipeline: gradients of tied weights are not summed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    rank: int | None = None,
    world_size: int | None = None,
    group: dist.ProcessGroup | None = None,
    tied: Mapping[nn.Parameter, Sequence[int]] | None = None,
) -> list[Tensor]:
    """As the reference, but for the fault."""
    return right(stage, microbatches, targets, loss_fn, schedule, rank, world_size, group, None)
