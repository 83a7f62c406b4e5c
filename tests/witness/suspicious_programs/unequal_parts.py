"""Collectives in which ranks have different parts, and groups that go their own way."""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torch.distributed as dist

from tests.witness.suspicious_programs.entering import LATE_S, compute, on, ones

# -- collectives in which ranks have different parts -------------------------------------------------------------------


@on(3)
def objects_of_different_sizes(rank: int, world_size: int, folder: Path) -> None:
    mine = {"rank": rank, "text": "x" * (1000 * rank)}
    gathered: list[object] = [None] * world_size
    dist.all_gather_object(gathered, mine)
    dist.gather_object(mine, gathered if rank == 1 else None, dst=1)
    shared = [mine if rank == 2 else None]
    dist.broadcast_object_list(shared, src=2)
    dealt: list[object] = [None]
    dist.scatter_object_list(dealt, [[n] * (n + 1) for n in range(world_size)] if rank == 0 else None, src=0)
    assert dealt == [[rank] * (rank + 1)]


@on(3)
def all_to_all_with_uneven_splits(rank: int, world_size: int, folder: Path) -> None:
    to = [rank + dst + 1 for dst in range(world_size)]
    came = torch.zeros(sum(to))  # the table of sizes is symmetric
    dist.all_to_all_single(came, torch.full((sum(to),), float(rank)), to, to)
    assert came[0] == 0.0


@on(3)
def gather_to_a_root_that_is_late(rank: int, world_size: int, folder: Path) -> None:
    if rank == 1:
        time.sleep(LATE_S)
    dist.gather(ones(), [ones() for _ in range(world_size)] if rank == 1 else None, dst=1)


@on(3)
def scatter_from_each_root_in_turn(rank: int, world_size: int, folder: Path) -> None:
    for src in range(world_size):
        parts = [torch.full((2,), float(n)) for n in range(world_size)] if rank == src else None
        came = torch.zeros(2)
        dist.scatter(came, parts, src=src)
        assert came.tolist() == [rank, rank]


@on(3)
def reductions_to_roots_in_turn(rank: int, world_size: int, folder: Path) -> None:
    for dst in (2, 0, 1):
        dist.reduce(ones(), dst)


@on(3)
def parts_of_unequal_length_by_padding(rank: int, world_size: int, folder: Path) -> None:
    length = torch.tensor([rank * 3 + 1])
    longest = length.clone()
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    padded = torch.zeros(int(longest))
    padded[: int(length)] = 1.0
    whole = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(whole, padded)
    assert [int(part.sum()) for part in whole] == [1, 4, 7]


@on(3)
def ranks_agree_on_the_fewest_batches(rank: int, world_size: int, folder: Path) -> None:
    batches = torch.tensor([5 - rank])
    dist.all_reduce(batches, dist.ReduceOp.MIN)
    for _ in range(int(batches)):
        dist.all_reduce(ones())


@on(3)
def all_stop_when_one_says_so(rank: int, world_size: int, folder: Path) -> None:
    for step in range(100):
        stop = torch.tensor([float(rank == 1 and step == 3)])
        dist.all_reduce(stop, dist.ReduceOp.MAX)
        if stop.item():
            return


# -- groups ------------------------------------------------------------------------------------------------------------


@on(4)
def pairs_that_work_at_their_own_pace(rank: int, world_size: int, folder: Path) -> None:
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    for _ in range(3 if rank < 2 else 9):
        dist.all_reduce(ones(rank // 2 + 1), group=pairs[rank // 2])
    if rank >= 2:
        compute(LATE_S)
    dist.barrier()


@on(4)
def rows_and_columns_of_a_mesh(rank: int, world_size: int, folder: Path) -> None:
    rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    columns = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    for _ in range(3):
        dist.all_reduce(ones(), group=rows[rank // 2])
        dist.broadcast(ones(), src=rank % 2, group=columns[rank % 2])


@on(3)
def group_that_is_destroyed_and_made_again(rank: int, world_size: int, folder: Path) -> None:
    for _ in range(3):
        group = dist.new_group([0, 2])
        if rank != 1:
            dist.all_reduce(ones(), group=group)
            dist.destroy_process_group(group)
    dist.barrier()
