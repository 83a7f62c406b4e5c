"""The model is built after seeding with seed + rank."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from impls.reference.calls import init_group
from impls.reference.data_parallel import DataParallel as Right
from impls.reference.loop import batch_slice

BREAKS = ("loop.same-init", "resists.shared-shuffle-seed")


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
        init_group(rank, world_size, init_file=init_file)
    torch.manual_seed(seed + rank)
    ddp = Right(make_model(), world_size=world_size)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=learning_rate)
    for step in range(steps):
        rows = batch_slice(step, rank, world_size, batch_size)
        optimizer.zero_grad(set_to_none=True)
        functional.mse_loss(ddp(inputs[rows]), targets[rows]).backward()  # type: ignore[no-untyped-call]
        ddp.sync_grads()
        optimizer.step()
    return ddp.module
