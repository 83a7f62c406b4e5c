"""The cure of slow accumulation runs every microbatch outside no_sync: nothing is saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

BREAKS = ("trouble.slow-accumulation",)


def cure_slow_accumulation(
    module: nn.Module, microbatches: Sequence[Tensor], loss_fn: Callable[[Tensor], Tensor]
) -> None:
    """One reduction for each."""
    for rows in microbatches:
        loss_fn(module(rows)).backward()
