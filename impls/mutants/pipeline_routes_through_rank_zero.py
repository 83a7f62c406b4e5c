"""Pipeline: what passes between two stages goes by way of rank 0, as if it were a server."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from impls.mutants import _lockstep_pipeline as right

BREAKS = ("strategies.pipeline.traffic", "strategies.pipeline.link")


class _Hands(right.Hands):
    def pass_on(self, tensor: Tensor | None, src: int, dst: int) -> Tensor | None:
        if 0 in (src, dst):
            return super().pass_on(tensor, src, dst)
        return super().pass_on(super().pass_on(tensor, src, 0), 0, dst)


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
