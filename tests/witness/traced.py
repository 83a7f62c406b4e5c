"""Rank programs whose operations, bytes and times are known beforehand."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from fixtures.witness import compute
from fixtures.world.context import RankContext
from impls.reference.collectives import ring_allreduce

NUMEL = 12
MIB = 1 << 20


def _empty(world_size: int, numel: int = NUMEL) -> list[Tensor]:
    return [torch.zeros(numel) for _ in range(world_size)]


# -- honest programs ---------------------------------------------------------------------------------------------------


def collectives(ctx: RankContext) -> None:
    """Each collective once, in the order of EACH_COLLECTIVE in test_trace."""
    n, tensor = ctx.world_size, torch.ones(NUMEL)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    dist.broadcast(tensor, src=1)
    dist.reduce(tensor, dst=1, op=dist.ReduceOp.PRODUCT)
    dist.all_gather(_empty(n), tensor)
    dist.all_gather_single(torch.zeros(n * NUMEL), tensor)
    dist.reduce_scatter(tensor, _empty(n))
    dist.reduce_scatter_single(tensor, torch.ones(n * NUMEL))
    dist.gather(tensor, _empty(n) if ctx.rank == 1 else None, dst=1)
    dist.scatter(tensor, _empty(n) if ctx.rank == 1 else None, src=1)
    dist.all_to_all(_empty(n), _empty(n))
    dist.all_to_all_single(torch.zeros(n * NUMEL), torch.ones(n * NUMEL))
    dist.barrier()


def by_keyword(ctx: RankContext) -> None:
    group = dist.group.WORLD
    tensor = torch.ones(NUMEL)
    group.allreduce(tensors=[tensor], opts=dist.AllreduceOptions()).wait()
    group.allreduce(tensor, dist.ReduceOp.MIN).wait()
    group.broadcast(tensor, root=1).wait()
    group.reduce(tensor, root=1, op=dist.ReduceOp.MAX).wait()


def dtypes(ctx: RankContext) -> None:
    for dtype in (torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool):
        dist.broadcast(torch.ones(NUMEL, dtype=dtype), src=0)


def messages(ctx: RankContext) -> None:
    """Rank 0 sends three ways, rank 1 receives three ways; the last from anybody."""
    tensor = torch.ones(NUMEL)
    if ctx.rank == 0:
        dist.send(tensor, dst=1, tag=7)
        dist.isend(tensor, dst=1).wait()
        dist.send(tensor, dst=1)
    elif ctx.rank == 1:
        dist.recv(tensor, src=0, tag=7)
        dist.irecv(tensor, src=0).wait()
        dist.recv(tensor)


def batched_ring(ctx: RankContext) -> None:
    right, left = (ctx.rank + 1) % ctx.world_size, (ctx.rank - 1) % ctx.world_size
    mine, theirs = torch.ones(NUMEL), torch.zeros(NUMEL)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, theirs, left)])
    for work in works:
        work.wait()


def coalesced(ctx: RankContext) -> None:
    with dist._coalescing_manager():
        dist.all_reduce(torch.ones(NUMEL))
        dist.all_reduce(torch.ones(3))


def functional_collectives(ctx: RankContext) -> list[float]:
    tensor = torch.ones(NUMEL)
    reduced = functional.all_reduce(tensor, "sum", dist.group.WORLD)
    gathered = functional.all_gather_single(tensor, 0, dist.group.WORLD)
    return [float(reduced.sum()), float(gathered.sum())]


def subgroup(ctx: RankContext) -> int:
    """Ranks 1 and 2 reduce among themselves; rank 2 is root and sends to rank 1 by their global numbers."""
    group = dist.new_group([1, 2])
    tensor = torch.ones(NUMEL)
    if ctx.rank > 0:
        dist.all_reduce(tensor, group=group)
        dist.broadcast(tensor, src=2, group=group)
        if ctx.rank == 2:
            dist.send(tensor, dst=1, group=group)
        else:
            dist.recv(tensor, src=2, group=group)
    return int(tensor[0])


def lonely_subgroup(ctx: RankContext) -> None:
    """Rank 0 makes a group with rank 1, which knows nothing of it."""
    if ctx.rank == 0:
        dist.new_group([0, 1])


def device_mesh(ctx: RankContext) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    ctx.mark("made")
    dist.all_reduce(torch.ones(NUMEL), group=mesh.get_group("shard"))


def asynchronous(ctx: RankContext) -> None:
    work = dist.all_reduce(torch.ones(NUMEL), async_op=True)
    ctx.mark("issued")
    work.wait()
    ctx.mark("waited")


def polled(ctx: RankContext) -> None:
    work = dist.all_reduce(torch.ones(NUMEL), async_op=True)
    while not work.is_completed():
        pass
    ctx.mark("seen")
    work.wait()


def forgotten(ctx: RankContext) -> None:
    """Nobody ever waits for the second operation."""
    tensor = torch.ones(NUMEL)
    works = [dist.all_reduce(tensor), dist.all_reduce(torch.ones(NUMEL), async_op=True)]
    dist.barrier()
    del works


def everything(ctx: RankContext) -> None:
    """All forms that reach the backend in ways of their own."""
    collectives(ctx)
    by_keyword(ctx)
    batched_ring(ctx)
    coalesced(ctx)
    functional_collectives(ctx)
    group, n = dist.group.WORLD, ctx.world_size
    outputs, inputs = [torch.zeros(2), torch.zeros(3)], [torch.ones(2 * n), torch.ones(3 * n)]
    group.reduce_scatter_single_coalesced(outputs, inputs).wait()
    group.all_gather_single_coalesced(inputs, outputs).wait()
    dist.monitored_barrier()
    dist.all_gather_object([None] * n, ctx.rank)
    dist.barrier(dist.new_group(list(range(n))))


def sparse(ctx: RankContext) -> list[float]:
    tensor = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.tensor([1.0, 2.0]), (4,))
    dist.all_reduce(tensor)
    return [float(value) for value in tensor.to_dense()]


def bad_root(ctx: RankContext) -> str:
    try:
        dist.group.WORLD.broadcast(torch.ones(1), root=9).wait()
    except RuntimeError as error:
        return str(error)
    return ""


def refused(ctx: RankContext) -> str:
    try:
        dist.send(torch.ones(4, 4)[:, 1], dst=(ctx.rank + 1) % ctx.world_size)
    except (ValueError, RuntimeError) as error:
        return type(error).__name__
    return ""


def _model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64))


def ddp_steps(ctx: RankContext, num_steps: int, bucket_cap_mb: float) -> list[float]:
    model = DistributedDataParallel(_model(), bucket_cap_mb=bucket_cap_mb)
    ctx.mark("constructed")
    for _ in range(num_steps):
        model(torch.ones(2, 64) * ctx.rank).sum().backward()
        ctx.mark("step")
    return [float(parameter.grad.sum()) for parameter in model.parameters()]


def ddp_under_watch(ctx: RankContext, width: int) -> None:
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(4)))
    ddp = DistributedDataParallel(model, bucket_cap_mb=width * width * 4 / MIB)
    ddp(torch.ones(8, width)).sum().backward()  # DDP puts its buckets in order during the first step
    stop = compute.watch(model, ctx.mark)
    for _ in range(3):
        ddp(torch.ones(256, width)).sum().backward()
        ctx.mark("step-begin")
    stop()


def reduce_after_backward(ctx: RankContext, width: int) -> None:
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(4)))
    compute.watch(model, ctx.mark)
    model(torch.ones(256, width)).sum().backward()
    works = [dist.all_reduce(parameter.grad, async_op=True) for parameter in model.parameters()]
    for work in works:
        work.wait()


def fsdp_step(ctx: RankContext) -> None:
    model = _model()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    model(torch.ones(2, 64)).sum().backward()


def in_three_threads(ctx: RankContext, num_operations: int) -> None:
    """Each thread has a group of its own, and marks while the others are in the midst of calls."""

    def reduce(group: dist.ProcessGroup) -> None:
        for _ in range(num_operations):
            dist.all_reduce(torch.ones(1), group=group)
            ctx.mark("reduced")

    groups = [dist.new_group(list(range(ctx.world_size))) for _ in range(3)]
    threads = [threading.Thread(target=reduce, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# -- the wire ----------------------------------------------------------------------------------------------------------


def each_on_the_wire(ctx: RankContext, numel: int) -> None:
    """Each collective with a window of its own, named after it."""
    n, tensor = ctx.world_size, torch.ones(numel)
    uneven = [(ctx.rank + peer) % 3 * numel for peer in range(n)]  # what rank r and rank p exchange
    uneven_everywhere = [2 * peer % 3 * numel for peer in range(n)]  # what is scattered to rank p
    calls: dict[str, Callable[[], object]] = {
        "all_reduce": lambda: dist.all_reduce(tensor),
        "broadcast": lambda: dist.broadcast(tensor, src=1),
        "reduce": lambda: dist.reduce(tensor, dst=1),
        "all_gather": lambda: dist.all_gather(_empty(n, numel), tensor),
        "all_gather_single": lambda: dist.all_gather_single(torch.zeros(n * numel), tensor),
        "reduce_scatter": lambda: dist.reduce_scatter(tensor, _empty(n, numel)),
        "reduce_scatter_single": lambda: dist.reduce_scatter_single(tensor, torch.ones(n * numel)),
        "gather": lambda: dist.gather(tensor, _empty(n, numel) if ctx.rank == 1 else None, dst=1),
        "scatter": lambda: dist.scatter(tensor, _empty(n, numel) if ctx.rank == 1 else None, src=1),
        "all_to_all": lambda: dist.all_to_all_single(torch.zeros(n * numel), torch.ones(n * numel)),
        "uneven_all_to_all": lambda: dist.all_to_all_single(
            torch.zeros(sum(uneven)), torch.zeros(sum(uneven)), uneven, uneven
        ),
        "uneven_reduce_scatter": lambda: dist.reduce_scatter(
            torch.zeros(uneven[ctx.rank]), [torch.zeros(part) for part in uneven_everywhere]
        ),
        "coalesced_all_reduce": lambda: coalesced(ctx),
        "coalesced_reduce_scatter": lambda: dist.group.WORLD.reduce_scatter_single_coalesced(
            _empty(2, numel), _empty(2, n * numel)
        ).wait(),
        "ring": lambda: batched_ring(ctx),
        "barrier": dist.barrier,
        "new_group": lambda: dist.new_group(list(range(n))),
    }
    for name, call in calls.items():
        with ctx.window(name):
            call()


def all_reduce_on_the_wire(ctx: RankContext, num_bytes: int) -> None:
    with ctx.window("all_reduce"):
        dist.all_reduce(torch.ones(num_bytes // 4))


def ring_over_a_mesh(ctx: RankContext, numel: int) -> float:
    mesh = ctx.mesh()
    with ctx.window("ring"):
        reduced = ring_allreduce(mesh, ctx.rank, ctx.world_size, torch.ones(numel))
        mesh.flush()
    return float(reduced.sum())


def printing(ctx: RankContext) -> None:
    with ctx.window("print"):
        print("x" * 100_000)
