"""What the benchmarks run in the ranks. Times are taken on rank 0 between barriers and returned in seconds."""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from fixtures import weighing
from fixtures.shapes import LLAMA_3_70B
from fixtures.weighing import Recipe
from fixtures.world.context import RankContext
from impls import torch_native
from impls.mesh import GlooMesh
from impls.reference.collectives import ring_allreduce
from impls.reference.data_parallel import DataParallel
from impls.reference.fsdp import fully_shard
from impls.reference.zero1 import ShardedOptimizer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # this import compiles scripts of torch's own
    from torch.distributed.optim import ZeroRedundancyOptimizer

_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss


def nothing(ctx: RankContext) -> None:
    """The cheapest check there is."""


def given(ctx: RankContext, value: object) -> None:
    """Take a value, and do nothing."""


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
    return _timed_steps(wrapped, torch.optim.SGD(wrapped.parameters(), lr=1e-3), number)


def zero1_step(ctx: RankContext, whose: str, number: int) -> float:
    """Seconds of one forward, backward and Adam step of 10 M parameters under ZeRO-1; torch's goes with its DDP."""
    module = _model()
    if whose == "reference":
        return _timed_steps(module, ShardedOptimizer(module.parameters(), torch.optim.Adam, lr=1e-3), number)
    wrapped = nn.parallel.DistributedDataParallel(module)
    return _timed_steps(wrapped, ZeroRedundancyOptimizer(module.parameters(), torch.optim.Adam, lr=1e-3), number)


def _timed_steps(wrapped: nn.Module, optimizer: Any, number: int) -> float:
    inputs = torch.randn(16, 1414)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        wrapped(inputs).square().mean().backward()
        optimizer.step()

    for _ in range(2):  # torch's wrapper rebuilds its buckets in its second step
        step()
    return timed(step, number)


def fully_sharded_pass(ctx: RankContext, whose: str, number: int) -> float:
    """Seconds of one forward and backward of 10 M parameters, fully sharded."""
    wrapped = fully_shard(_model()) if whose == "reference" else torch_native.fully_shard(_model())
    inputs = torch.randn(16, 1414)

    def both() -> None:
        wrapped.zero_grad(set_to_none=True)
        wrapped(inputs).square().mean().backward()

    for _ in range(2):
        both()
    return timed(both, number)


def weigh_70b(ctx: RankContext, recipe: dict[str, Any], world_size: int) -> tuple[float, float]:
    """Seconds of weighing one rank's share of a 70B shape on fake tensors, and the peak GB of this process."""
    assert ctx.impl is not None
    start = time.perf_counter()
    weighing.weigh(ctx.impl, LLAMA_3_70B, Recipe(**recipe), world_size=world_size)
    took_s = time.perf_counter() - start
    return took_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES / 1e9
