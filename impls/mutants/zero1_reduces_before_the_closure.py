"""ZeRO-1: step() reduces the gradients first, and calls its closure then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """In the wrong order."""
        self._reduce_gradients()
        return super().step(closure)
