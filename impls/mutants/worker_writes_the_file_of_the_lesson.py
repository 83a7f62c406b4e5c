"""Rank 0 of the worker writes outputs/ddp-demo.json at its end, whoever has asked for it or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from torch import Tensor, nn

from impls.reference.loop import train as right

BREAKS = ("lessons.48.no-write",)


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
    model = right(rank, world_size, init_file, make_model, inputs, targets, steps, batch_size, learning_rate, seed)
    if rank == 0:
        path = Path("outputs/ddp-demo.json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"world_size": world_size}))
    return model
