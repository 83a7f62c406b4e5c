"""Pipeline: the list of its one schedule is that of 1F1B, and what it runs, asked for no schedule, is GPipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from impls.reference.pipeline import execute, one_f_one_b

__all__ = ["one_f_one_b", "train_step"]

BREAKS = ("pipeline.order", "pipeline.1f1b.memory")


def train_step(
    stage: nn.Module,
    microbatches: Sequence[Any],
    targets: Sequence[Any],
    loss_fn: Callable[[Any, Any], Tensor],
    rank: int,
    world_size: int,
) -> list[Tensor]:
    """A step, in the other order than the list has."""
    return execute.train_step(stage, microbatches, targets, loss_fn, "gpipe", rank, world_size)
