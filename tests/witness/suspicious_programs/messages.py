"""Messages in any order, and operations that are under way for long."""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from tests.witness.suspicious_programs.entering import LATE_S, compute, on, ones

# -- messages ----------------------------------------------------------------------------------------------------------


@on(4)
def uneven_sends_that_match(rank: int, world_size: int, folder: Path) -> None:
    if rank:
        for number in range(rank):
            dist.recv(torch.ones(number + 1), 0)
        return
    for dst in range(1, world_size):
        for number in range(dst):
            dist.send(torch.ones(number + 1), dst)


@on(3)
def batched_messages_in_any_order(rank: int, world_size: int, folder: Path) -> None:
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    arrived = ones(), ones()
    operations = [
        dist.P2POp(dist.isend, ones(), right),
        dist.P2POp(dist.irecv, arrived[0], left),
        dist.P2POp(dist.isend, ones(), left),
        dist.P2POp(dist.irecv, arrived[1], right),
    ]
    turned = operations[rank:] + operations[:rank]
    for work in dist.batch_isend_irecv(turned[::-1] if rank == 1 else turned):
        work.wait()


@on(2)
def tags_taken_out_of_order(rank: int, world_size: int, folder: Path) -> None:
    if rank == 0:
        works = [dist.isend(torch.full((2,), float(tag)), 1, tag=tag) for tag in range(1, 5)]
        for work in works:
            assert work is not None
            work.wait()
        return
    for tag in (3, 1, 4, 2):
        came = torch.zeros(2)
        dist.recv(came, 0, tag=tag)
        assert came.tolist() == [tag, tag]


@on(4)
def whoever_is_ready_is_served_first(rank: int, world_size: int, folder: Path) -> None:
    if rank:
        time.sleep(LATE_S * (world_size - rank) / world_size)
        dist.send(torch.tensor([float(rank)]), 0)
        dist.recv(torch.ones(1), 0)
        return
    for _ in range(world_size - 1):
        came = torch.zeros(1)
        dist.send(came, dist.recv(came))  # from anybody


@on(4)
def recursive_halving_and_doubling(rank: int, world_size: int, folder: Path) -> None:
    def summed(tensor: Tensor, distance: int) -> Tensor:
        if distance == world_size:
            return tensor
        peer, came = rank ^ distance, torch.empty_like(tensor)
        work = dist.isend(tensor, peer)
        dist.recv(came, peer)
        assert work is not None
        work.wait()
        return summed(tensor + came, 2 * distance)

    assert summed(ones(), 1).tolist() == [world_size] * 4


@on(3)
def pipeline_with_sends_in_the_background(rank: int, world_size: int, folder: Path) -> None:
    works = []
    for number in range(6):
        activation = torch.full((256,), float(number))
        if rank:
            dist.recv(activation, rank - 1)
        compute(0.02 * (rank + 1))
        if rank < world_size - 1:
            works.append((dist.isend(activation, rank + 1), activation))
    for work, _ in works:
        assert work is not None
        work.wait()


# -- operations under way ----------------------------------------------------------------------------------------------


@on(3)
def async_work_waited_for_late(rank: int, world_size: int, folder: Path) -> None:
    works = [dist.all_reduce(ones(1 << 12), async_op=True) for _ in range(10)]
    compute(LATE_S if rank == 1 else 0.01)
    for work in reversed(works):
        assert work is not None
        work.wait()


@on(2)
def work_that_is_polled(rank: int, world_size: int, folder: Path) -> None:
    if rank:
        time.sleep(LATE_S)
    work = dist.all_reduce(ones(), async_op=True)
    assert work is not None
    while not work.is_completed():
        time.sleep(0.01)


@on(2)
def futures_with_callbacks(rank: int, world_size: int, folder: Path) -> None:
    if rank:
        time.sleep(LATE_S)
    work = dist.all_reduce(ones(), async_op=True)
    assert work is not None
    halved = work.get_future().then(lambda future: future.value()[0] / 2)
    assert halved.wait().tolist() == [1.0] * 4
