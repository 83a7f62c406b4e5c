"""The batch size counts the rows of all ranks together: each reads its N-th part."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from impls.reference.loop import train as right

BREAKS = ("defaults.batch-size", "lessons.77", "loop.slices")


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
    share = batch_size // world_size
    return right(rank, world_size, init_file, make_model, inputs, targets, steps, share, learning_rate, seed)
