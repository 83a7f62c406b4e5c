"""Pipeline: each gradient of a boundary activation is sent back twice, the second time for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from impls.mutants import _lockstep_pipeline as right

BREAKS = ("strategies.pipeline.traffic", "strategies.pipeline.link")


class _Hands(right.Hands):
    def backward(self, tensor: Tensor | None, src: int, dst: int, microbatch: int) -> Tensor | None:
        self.pass_on(tensor, src, dst)
        return self.pass_on(tensor, src, dst)


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
