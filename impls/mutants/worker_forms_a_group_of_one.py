"""Every rank trains in a group of its own."""

from __future__ import annotations

from collections.abc import Callable

import torch.distributed as dist
from torch import Tensor, nn

from impls.reference.loop import train as right

BREAKS = ("loop.rendezvous", "defaults.world-size", "lessons.48.world-size")


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
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return right(0, 1, init_file, make_model, inputs, targets, steps, batch_size, learning_rate, seed)
