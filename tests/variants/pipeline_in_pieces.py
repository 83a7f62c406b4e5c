"""A right pipeline that keeps its receive buffers from step to step and sends each tensor in two halves, at once."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from impls.mutants import _lockstep_pipeline as base

_buffers: dict[tuple[int, int, tuple[int, ...]], Tensor] = {}


class _Pieces(base.Hands):
    """Activations and gradients have the shape of the microbatches, as all layers are square."""

    def __init__(self, rank: int, microbatches: list[Tensor]) -> None:
        super().__init__(rank)
        self._shapes = [tuple(rows.shape) for rows in microbatches]

    def forward(self, tensor: Tensor | None, src: int, dst: int, microbatch: int) -> Tensor | None:
        return self._pass(tensor, src, dst, microbatch)

    def backward(self, tensor: Tensor | None, src: int, dst: int, microbatch: int) -> Tensor | None:
        return self._pass(tensor, src, dst, microbatch)

    def _pass(self, tensor: Tensor | None, src: int, dst: int, microbatch: int) -> Tensor | None:
        if self.rank not in (src, dst):
            return None
        key = (src, microbatch, self._shapes[microbatch])
        if self.rank == dst:
            tensor = _buffers.setdefault(key, torch.empty(self._shapes[microbatch]))
        assert tensor is not None
        verb, peer = (dist.isend, dst) if self.rank == src else (dist.irecv, src)
        pieces = tensor.detach().contiguous().flatten().chunk(2)
        for work in dist.batch_isend_irecv([dist.P2POp(verb, piece, peer) for piece in pieces]):
            work.wait()
        return tensor if self.rank == dst else None


def train_step(stage: Any, microbatches: Any, targets: Any, loss_fn: Any, rank: int, world_size: int) -> list[Tensor]:
    """GPipe."""
    return base.train_step(stage, microbatches, targets, loss_fn, rank, world_size, _Pieces(rank, microbatches))
