"""Rank programs that lie about what they do, go past the trace, or differ between ranks where gloo says nothing."""

from __future__ import annotations

import datetime
import os

import torch
import torch.distributed as dist
from torch import Tensor

from fixtures.world.context import RankContext
from tests.witness.traced import MIB, NUMEL

# -- liars -------------------------------------------------------------------------------------------------------------


class _Ledger:
    def __init__(self) -> None:
        self.num_operations = 0


def patched_all_reduce(ctx: RankContext) -> int:
    """An implementation that reduces three times and patches torch.distributed to count one."""
    ledger, real = _Ledger(), dist.all_reduce

    def counted(tensor: Tensor, *args: object, **kwargs: object) -> object:
        ledger.num_operations += 1
        for _ in range(2):
            real(tensor.clone())
        return real(tensor, *args, **kwargs)

    dist.all_reduce = counted
    try:
        with ctx.window("reduction"):
            dist.all_reduce(torch.ones(NUMEL))
    finally:
        dist.all_reduce = real
    return ledger.num_operations


def own_process_group(ctx: RankContext) -> float:
    """Reduces a mebibyte over a group made by hand, where no trace is taken."""
    store = dist.FileStore(str(ctx.rendezvous_file()), ctx.world_size)
    group = dist.ProcessGroupGloo(store, ctx.rank, ctx.world_size, datetime.timedelta(seconds=30))
    tensor = torch.ones(MIB // 4)
    with ctx.window("reduction"):
        group.allreduce([tensor]).wait()
    return float(tensor[0])


def past_the_trace(ctx: RankContext) -> float:
    """Takes the backend out of the traced group and calls it directly."""
    tensor = torch.ones(MIB // 4)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    with ctx.window("reduction"):
        backend.allreduce([tensor]).wait()
    return float(tensor[0])


def one_past_the_trace(ctx: RankContext) -> None:
    dist.all_reduce(torch.ones(NUMEL))
    dist.group.WORLD._get_backend(torch.device("cpu")).allreduce([torch.ones(1)]).wait()
    dist.group.WORLD._inner.broadcast(torch.ones(1), 0).wait()
    dist.barrier()


def through_a_file(ctx: RankContext) -> None:
    with ctx.window("reduction"):
        dist.all_reduce(torch.ones(NUMEL))
        (ctx.folder / f"gradients-{ctx.rank}").write_bytes(bytes(MIB))


def through_a_pipe(ctx: RankContext) -> None:
    reader, writer = os.pipe()
    with ctx.window("reduction"):
        dist.all_reduce(torch.ones(NUMEL))
        for _ in range(MIB >> 12):
            os.write(writer, bytes(1 << 12))
            os.read(reader, 1 << 12)
    os.close(reader)
    os.close(writer)


# -- disagreements that gloo does not report ---------------------------------------------------------------------------


def swapped_order(ctx: RankContext) -> None:
    first, second = torch.ones(NUMEL), torch.ones(NUMEL)
    if ctx.rank == 1:
        first, second = second, first
        _reduce_second(second)
        _reduce_first(first)
    else:
        _reduce_first(first)
        _reduce_second(second)


def _reduce_first(tensor: Tensor) -> None:
    dist.all_reduce(tensor)


def _reduce_second(tensor: Tensor) -> None:
    dist.all_reduce(tensor)


def sum_against_max(ctx: RankContext) -> None:
    dist.all_reduce(torch.ones(NUMEL), dist.ReduceOp.MAX if ctx.rank == 1 else dist.ReduceOp.SUM)


def same_width(ctx: RankContext) -> None:
    dist.all_reduce(torch.ones(NUMEL, dtype=torch.int32 if ctx.rank == 1 else torch.float32))


def message_of_same_width(ctx: RankContext) -> None:
    if ctx.rank == 0:
        dist.send(torch.ones(NUMEL), dst=1)
    else:
        dist.recv(torch.ones(NUMEL, dtype=torch.int32), src=0)


def turned(ctx: RankContext) -> None:
    dist.all_reduce(torch.ones(3, 4) if ctx.rank == 1 else torch.ones(4, 3))
