"""Pipeline: activations and gradients are sent in 64 bits, whatever they are."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from impls.mutants import _lockstep_pipeline as right

BREAKS = ("strategies.pipeline.traffic", "strategies.pipeline.link")


class _Hands(right.Hands):
    def pass_on(self, tensor: Tensor | None, src: int, dst: int) -> Tensor | None:
        words = None if tensor is None else tensor.double().view(torch.float32)  # two for each number
        arrived = super().pass_on(words, src, dst)
        return None if arrived is None else arrived.view(torch.float64).float()


def train_step(
    stage: nn.Module,
    microbatches: Sequence[Tensor],
    targets: Sequence[Tensor],
    loss_fn: right.LossFunction,
    rank: int,
    world_size: int,
) -> list[Tensor]:
    """As it should be, but for the fault."""
    return right.train_step(stage, microbatches, targets, loss_fn, rank, world_size, _Hands(rank))
