"""Programs that lock, and programs that only look as if they did. Each is ``program(rank, world_size)``."""

from __future__ import annotations

import os
import signal
import threading
import time

import torch
import torch.distributed as dist
from torch import nn


def send_send(rank: int, world_size: int) -> None:
    dist.send(torch.ones(4), (rank + 1) % world_size)
    dist.recv(torch.ones(4), (rank - 1) % world_size)


def recv_recv(rank: int, world_size: int) -> None:
    dist.recv(torch.ones(4), 1 - rank)
    dist.send(torch.ones(4), 1 - rank)


def rank_two_skips_an_all_reduce(rank: int, world_size: int) -> None:
    for step in range(4):
        if rank != 2 or step != 3:
            dist.all_reduce(torch.ones(8))


def rank_one_calls_broadcast(rank: int, world_size: int) -> None:
    if rank == 1:
        dist.broadcast(torch.ones(8), 1)
    else:
        dist.all_reduce(torch.ones(8))


def roots_differ(rank: int, world_size: int) -> None:
    dist.broadcast(torch.ones(8), 2 if rank == 2 else 0)
    dist.barrier()


def sizes_differ(rank: int, world_size: int) -> None:
    dist.all_reduce(torch.ones(1 if rank == 2 else 8))
    dist.barrier()


def groups_crossed(rank: int, world_size: int) -> None:
    first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
    for group in (first, second) if rank == 0 else (second, first):
        dist.all_reduce(torch.ones(2), group=group)


def rank_one_makes_no_group(rank: int, world_size: int) -> None:
    if rank != 1:
        dist.new_group(list(range(world_size)))


def rank_zero_skips_a_barrier(rank: int, world_size: int) -> None:
    if rank:
        dist.barrier()


def rank_one_raises(rank: int, world_size: int) -> None:
    if rank == 1:
        raise ValueError("no batch")
    dist.all_reduce(torch.ones(2))


def recv_of_a_message_with_another_tag(rank: int, world_size: int) -> None:
    if rank == 0:
        dist.send(torch.ones(4), 1, tag=1)
    else:
        dist.recv(torch.ones(4), 0, tag=2)


def tail_waits_for_a_rank_that_waits_in_a_collective(rank: int, world_size: int) -> None:
    if rank == 2:
        dist.recv(torch.ones(4), 0)
    dist.all_reduce(torch.ones(2))


class _Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, both: bool) -> torch.Tensor:
        x = self.first(x)
        return self.second(x) if both else x


def ddp_with_a_parameter_unused_on_rank_two(rank: int, world_size: int) -> None:
    model = nn.parallel.DistributedDataParallel(_Branches(), bucket_cap_mb=0.00001)
    for _ in range(2):
        model(torch.ones(2, 4), rank != 2).sum().backward()


def future_never_comes(rank: int, world_size: int) -> None:
    if rank == 0:
        dist.all_reduce(torch.ones(2), async_op=True).get_future().wait()


# Not deadlocks.


def sleeps_before_recv(rank: int, world_size: int) -> None:
    if rank == 1:
        time.sleep(3)
        dist.recv(torch.ones(4), 0)
    else:
        dist.send(torch.ones(4), 1)


def computes_before_all_reduce(rank: int, world_size: int) -> None:
    if rank == 1:
        end = time.monotonic() + 3
        a = torch.ones(64, 64)
        while time.monotonic() < end:
            a = a @ a / 64
    dist.all_reduce(torch.ones(4))


def reads_a_pipe_before_all_reduce(rank: int, world_size: int) -> None:
    if rank == 1:
        reader, writer = os.pipe()
        timer = os.fork()
        if timer == 0:
            time.sleep(1.5)
            os.write(writer, b"x")
            os._exit(0)
        os.read(reader, 1)
        os.waitpid(timer, 0)
    dist.all_reduce(torch.ones(4))


def thread_sends_later(rank: int, world_size: int) -> None:
    if rank == 0:
        go = threading.Event()

        def later() -> None:
            time.sleep(1)
            go.set()

        threading.Thread(target=later).start()
        go.wait()
        dist.send(torch.ones(4), 1)
    else:
        dist.recv(torch.ones(4), 0)


def waits_for_a_big_sum_in_a_future(rank: int, world_size: int) -> None:
    for _ in range(3):
        dist.all_reduce(torch.ones(25_000_000), async_op=True).get_future().wait()


def sleeps_for_ever(rank: int, world_size: int) -> None:
    if rank == 1:
        time.sleep(1000)
    dist.recv(torch.ones(4), 1)


def stops_itself(rank: int, world_size: int) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.all_reduce(torch.ones(4))
