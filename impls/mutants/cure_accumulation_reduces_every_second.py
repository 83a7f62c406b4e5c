"""The cure of slow accumulation takes every second microbatch inside no_sync, and saves half of what it could."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

from torch import Tensor, nn

BREAKS = ("trouble.slow-accumulation",)


def cure_slow_accumulation(
    module: nn.Module, microbatches: Sequence[Tensor], loss_fn: Callable[[Tensor], Tensor]
) -> None:
    """A reduction for every two, and one after the last."""
    for number, rows in enumerate(microbatches, start=1):
        with nullcontext() if number % 2 == 0 or number == len(microbatches) else module.no_sync():
            loss_fn(module(rows)).backward()
