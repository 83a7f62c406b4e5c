"""ZeRO-1: the clipping norm counts a tied parameter under each of its names."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def __init__(
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        module: nn.Module,
        group: dist.ProcessGroup | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(params, optimizer_cls, group, **kwargs)
        self._num_names = Counter(parameter for _, parameter in module.named_parameters(remove_duplicate=False))

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Add up the squares name by name."""
        self._reduce_gradients()
        square = torch.zeros((), dtype=torch.double)
        for flat in self._flats:
            assert flat.gradient is not None
            for piece in flat.pieces:
                part = flat.gradient[piece.within_shard].double().square().sum()
                square += self._num_names[piece.parameter] * part
        dist.all_reduce(square, group=self._group)
        norm = square.sqrt()
        for flat in self._flats:
            assert flat.gradient is not None
            flat.gradient *= (max_norm / (norm + 1e-6)).clamp(max=1.0)
        return norm
