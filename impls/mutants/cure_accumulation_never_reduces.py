"""The cure of slow accumulation takes the last microbatch inside no_sync as well: nothing is ever reduced."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

BREAKS = ("trouble.slow-accumulation",)


def cure_slow_accumulation(
    module: nn.Module, microbatches: Sequence[Tensor], loss_fn: Callable[[Tensor], Tensor]
) -> None:
    """Each rank keeps its own gradient."""
    with module.no_sync():
        for rows in microbatches:
            loss_fn(module(rows)).backward()
