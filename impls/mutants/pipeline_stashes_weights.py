"""Pipeline: each microbatch in flight has a version of the weights of its own, as PipeDream needs and this does not."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from torch import Tensor, nn

from impls.mutants import _lockstep_pipeline as right

BREAKS = ("strategies.pipeline.memory",)


def _version_of(stage: nn.Module) -> nn.Module:
    version = copy.deepcopy(stage)
    version.zero_grad()
    return version


def train_step(
    stage: nn.Module,
    microbatches: Sequence[Tensor],
    targets: Sequence[Tensor],
    loss_fn: right.LossFunction,
    rank: int,
    world_size: int,
) -> list[Tensor]:
    """As it should be, but for the fault."""
    return right.train_step(stage, microbatches, targets, loss_fn, rank, world_size, version_of=_version_of)
