"""What the benchmarks run in the ranks. Times are taken on rank 0 between barriers and returned in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from fixtures.world.context import RankContext
from impls.mesh import GlooMesh
from impls.reference.collectives import ring_allreduce
from impls.reference.data_parallel import DataParallel


def nothing(ctx: RankContext) -> None:
    """The cheapest check there is."""


def timed(action: Callable[[], object], number: int) -> float:
    """Seconds of one of `number` calls, between barriers."""
    dist.barrier()
    start = time.perf_counter()
    for _ in range(number):
        action()
    dist.barrier()
    return (time.perf_counter() - start) / number


def bare_ring(ctx: RankContext, numel: int) -> Tensor:
    """A ring all-reduce as short as isend and irecv allow: no mesh, no checks. ``numel`` is divisible by the ranks."""
    world_size, rank = ctx.world_size, ctx.rank
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    chunks = torch.ones(numel).chunk(world_size)
    arrived = torch.empty_like(chunks[0])
    for step in range(2 * (world_size - 1)):
        work = dist.isend(chunks[(rank - step) % world_size], right)
        target = chunks[(rank - step - 1) % world_size]
        dist.irecv(arrived, left).wait()
        work.wait()
        target.add_(arrived) if step < world_size - 1 else target.copy_(arrived)
    return chunks[0]


def many_bare_rings(ctx: RankContext, numel: int, number: int) -> float:
    """Seconds of one bare ring."""
    return timed(lambda: bare_ring(ctx, numel), number)


def ring(ctx: RankContext, numel: int, number: int) -> float:
    """Seconds of one reference ring all-reduce over the gloo mesh, in place like ``dist.all_reduce``."""
    mesh, tensor = GlooMesh(), torch.zeros(numel)
    return timed(lambda: ring_allreduce(mesh, ctx.rank, ctx.world_size, tensor, out=tensor), number)


def library(ctx: RankContext, numel: int, number: int) -> float:
    """Seconds of one ``dist.all_reduce``."""
    tensor = torch.zeros(numel)
    return timed(lambda: dist.all_reduce(tensor), number)


def _model() -> nn.Module:
    """About 10 M parameters: five square layers of 1,414."""
    torch.manual_seed(0)
    return nn.Sequential(*(layer for _ in range(5) for layer in (nn.Linear(1414, 1414), nn.ReLU())))


def training_step(ctx: RankContext, wrapper: str, number: int) -> float:
    """Seconds of one forward, backward and SGD step of 10 M parameters under ``reference`` or ``torch``."""
    wrapped = DataParallel(_model()) if wrapper == "reference" else nn.parallel.DistributedDataParallel(_model())
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=1e-3)
    inputs = torch.randn(16, 1414)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        wrapped(inputs).square().mean().backward()
        optimizer.step()

    for _ in range(2):  # torch's wrapper rebuilds its buckets in its second step
        step()
    return timed(step, number)
