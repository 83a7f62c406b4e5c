"""Pipeline: every rank keeps the weights of all stages, brought up to date in each step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls.mutants import _lockstep_pipeline as right

BREAKS = ("strategies.pipeline.memory", "strategies.pipeline.traffic")

_whole_model: list[Tensor] = []


def train_step(
    stage: nn.Module,
    microbatches: Sequence[Tensor],
    targets: Sequence[Tensor],
    loss_fn: right.LossFunction,
    rank: int,
    world_size: int,
) -> list[Tensor]:
    """As it should be, but for the fault."""
    own = nn.utils.parameters_to_vector(stage.parameters()).detach()
    sizes = [torch.empty(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(sizes, torch.tensor([own.numel()]))
    _whole_model[:] = [own if src == rank else torch.empty(int(size)) for src, size in enumerate(sizes)]
    for src, weights in enumerate(_whole_model):
        dist.broadcast(weights, src)
    return right.train_step(stage, microbatches, targets, loss_fn, rank, world_size)
