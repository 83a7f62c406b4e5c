"""The training step of the reference with a worker or a schedule that has a fault: what mutants of pipelines share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch.distributed as dist
from torch import Tensor, nn

from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.execute import Worker, step_with, train_step
from impls.reference.pipeline.names import named

Step = Callable[..., list[Tensor]]


def with_worker(worker: type[Worker]) -> Step:
    """The reference's `train_step`, done by `worker`."""

    @functools.wraps(train_step)
    def step(*args: Any, **kwargs: Any) -> list[Tensor]:
        return step_with(worker, *args, **kwargs)

    return step


def with_schedule(change: Callable[[str, Schedule], Schedule]) -> Step:
    """The reference's `train_step`, in the order that `change` makes of the schedule of a name."""

    def step(
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
        num_ranks = dist.get_world_size(group) if world_size is None else world_size
        num_chunks = len(stage) if isinstance(stage, (list, tuple)) else 1
        right = named(schedule, num_ranks, len(microbatches), num_chunks)
        changed = change(schedule, right)
        return train_step(stage, microbatches, targets, loss_fn, changed, rank, world_size, group, tied)

    return step
