"""The worker that every rank runs: meet, build the same model, train on one's own slice of each batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from impls.reference.calls import init_group
from impls.reference.data_parallel import DataParallel

# What lesson 48 (python -m lessons ddp) does when its command line does not say.
DEFAULT_WORLD_SIZE = 2
DEFAULT_BACKEND = "gloo"  # works on any CPU; "nccl" moves tensors between CUDA devices
DEFAULT_NUM_STEPS = 6
DEFAULT_BATCH_SIZE = 8  # rows per rank and step, so the global batch grows with N


def batch_slice(step: int, rank: int, world_size: int, batch_size: int) -> slice:
    """The rows of rank `rank` in step `step`: each step takes N * `batch_size` rows, rank after rank."""
    begin = step * world_size * batch_size + rank * batch_size
    return slice(begin, begin + batch_size)


def train(
    rank: int,
    world_size: int,
    init_file: str,
    make_model: Callable[[], nn.Module],
    inputs: Tensor,  # [rows, features], the same on all ranks
    targets: Tensor,  # [rows, outputs]
    steps: int,
    batch_size: int,  # rows per rank and step
    learning_rate: float,
    seed: int,
) -> nn.Module:
    """Train with SGD on the mean squared error and return the model, which is the same on all ranks."""
    if not dist.is_initialized():
        init_group(rank, world_size, init_file=init_file)
    torch.manual_seed(
        seed
    )  # the same on all ranks: a seed that depends on the rank belongs to data, never to the model
    ddp = DataParallel(make_model(), world_size=world_size)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=learning_rate)
    for step in range(steps):
        rows = batch_slice(step, rank, world_size, batch_size)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(ddp(inputs[rows]), targets[rows])
        loss.backward()  # type: ignore[no-untyped-call]
        ddp.sync_grads()  # the mean over ranks of equal local batches is the gradient of the global batch
        optimizer.step()
    return ddp.module
