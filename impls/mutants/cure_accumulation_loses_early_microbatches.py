"""The cure of slow accumulation reduces once, and only the last microbatch's gradient is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

BREAKS = ("trouble.slow-accumulation",)


def cure_slow_accumulation(
    module: nn.Module, microbatches: Sequence[Tensor], loss_fn: Callable[[Tensor], Tensor]
) -> None:
    """The others were for nothing."""
    loss_fn(module(microbatches[-1])).backward()
