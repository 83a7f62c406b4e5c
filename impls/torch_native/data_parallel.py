"""DistributedDataParallel and the calls around it, as PyTorch's documentation writes them."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel


def DataParallel(  # noqa: N802
    module: nn.Module, world_size: int, group: dist.ProcessGroup | None = None, bucket_cap_mb: float | None = None
) -> DistributedDataParallel:
    """`DistributedDataParallel`, told to expect parameters without gradient, as the contract has them.

    By default it does not look for them: the step after one is an error, or the ranks lock.
    """
    ddp = DistributedDataParallel(module, process_group=group, bucket_cap_mb=bucket_cap_mb, find_unused_parameters=True)
    assert dist.get_world_size(group) == world_size
    return ddp


def init_group(rank: int, world_size: int, init_file: str | None = None, port: int | None = None) -> None:
    """`init_process_group` by file, or by MASTER_ADDR and MASTER_PORT."""
    if init_file is None:
        os.environ["MASTER_PORT"] = str(port)
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    method = "env://" if init_file is None else f"file://{init_file}"
    dist.init_process_group(backend="gloo", init_method=method, rank=rank, world_size=world_size)


def broadcast_parameters(module: nn.Module, src: int = 0) -> None:
    """`broadcast` of each parameter and buffer."""
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.data, src=src)


def sum_gradients(module: nn.Module) -> None:
    """`all_reduce` of each gradient."""
    for parameter in module.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)


def average_gradients(module: nn.Module, world_size: int) -> None:
    """`all_reduce` of each gradient, then the division."""
    sum_gradients(module)
    for parameter in module.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(world_size)


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
    """The usual worker around `DistributedDataParallel`."""
    if not dist.is_initialized():
        init_group(rank, world_size, init_file)
    torch.manual_seed(seed)
    ddp = DataParallel(make_model(), world_size)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=learning_rate)
    for step in range(steps):
        begin = (step * world_size + rank) * batch_size
        rows = slice(begin, begin + batch_size)
        optimizer.zero_grad(set_to_none=True)
        functional.mse_loss(ddp(inputs[rows]), targets[rows]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    module: nn.Module = ddp.module
    return module
