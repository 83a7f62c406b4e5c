"""The loop begins at one: the last step is never made."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from impls.reference.loop import train as right

BREAKS = ("defaults.num-steps", "lessons.48", "loop.step")


def train(
    rank: int,
    world_size: int,
    init_file: str,
    make_model: Callable[[], nn.Module],
    inputs: Tensor,
    targets: Tensor,
    steps: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
) -> nn.Module:
    """The worker, with a fault."""
    return right(rank, world_size, init_file, make_model, inputs, targets, steps - 1, batch_size, learning_rate, seed)
