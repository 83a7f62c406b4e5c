"""Pipelines that run: a training step over stages on ranks, and where to cut a chain of layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn


def train_step(
    stage: nn.Module | list[nn.Module],
    microbatches: Sequence[Any],
    targets: Sequence[Any],
    loss_fn: Callable[[Any, Any], Tensor],
    rank: int,
    world_size: int,
    schedule: str = "1f1b",
) -> list[Tensor]:
    """Add the gradient of the mean over all microbatches to every ``.grad``; the losses, on the last stage's rank.

    `stage` is this rank's module, a list of them where it has several. Raise NotImplementedError for a schedule that
    you do not offer: ``1f1b``, ``gpipe``, ``interleaved_1f1b``, ``zb_h1``, ``zb_h2``, ``zbv``, ``dualpipe``,
    ``dualpipev``. Also ask for `group` or `tied`, if you need them.
    """
    raise NotImplementedError


def partition(costs: Sequence[float], num_stages: int) -> list[slice]:
    """The layers of each stage, in order, so that the costliest stage costs as little as possible."""
    raise NotImplementedError
