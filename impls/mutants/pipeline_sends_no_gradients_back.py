"""Pipeline: the gradient of a boundary activation stays where it was made, and only the last stage learns."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from impls.mutants import _lockstep_pipeline as right

BREAKS = ("strategies.pipeline.traffic",)


class _Hands(right.Hands):
    def backward(self, tensor: Tensor | None, src: int, dst: int, microbatch: int) -> Tensor | None:
        return None


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
