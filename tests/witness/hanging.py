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


def ddp_whose_rank_two_goes_on_to_a_barrier(rank: int, world_size: int) -> None:
    model = nn.parallel.DistributedDataParallel(_Branches(), bucket_cap_mb=0.00001)
    model(torch.ones(2, 4), rank != 2).sum().backward()
    dist.barrier()


def rank_one_fell_behind_long_ago(rank: int, world_size: int) -> None:
    for step in range(5):
        if rank == 1 and step == 1:
            dist.all_reduce(torch.ones(4), dist.ReduceOp.MAX)
        elif rank == 1 and step == 2:
            continue
        else:
            dist.all_reduce(torch.ones(4))


def half_deadlocked(rank: int, world_size: int) -> None:
    if rank < 2:
        send_send(rank, 2)
    while True:
        time.sleep(0.01)


def locks_itself(rank: int, world_size: int) -> None:
    if rank == 0:
        threading.Event().wait()
    dist.barrier()


def drops_the_handles_of_its_messages(rank: int, world_size: int) -> None:
    for _ in range(20):
        if rank == 0:
            dist.isend(torch.ones(2), 1)
        else:
            dist.irecv(torch.ones(2), 0)
    dist.barrier()


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


def takes_a_big_broadcast_while_the_root_computes(rank: int, world_size: int) -> None:
    work = dist.broadcast(torch.ones(60_000_000), 0, async_op=True)
    if rank == 0:
        end = time.monotonic() + 0.8
        while not work.is_completed() or time.monotonic() < end:
            pass
    else:
        work.get_future().wait()


def leaf_comes_late_to_a_broadcast(rank: int, world_size: int) -> None:
    if rank == 3:
        dist.recv(torch.ones(2), 0)
    if rank in (1, 2):
        time.sleep(0.4)
    dist.broadcast(torch.ones(2), 0)
    if rank == 0:
        dist.send(torch.ones(2), 3)


def sums_differ_in_kind(rank: int, world_size: int) -> None:
    dist.all_reduce(torch.ones(2), dist.ReduceOp.SUM if rank else dist.ReduceOp.MAX)


def leaves_works_behind(rank: int, world_size: int) -> None:
    works = []
    for _ in range(20):
        works.append(dist.irecv(torch.ones(2), 0) if rank else dist.isend(torch.ones(2), 1))
        dist.all_reduce(torch.ones(2), async_op=True)
    time.sleep(0.5)
    dist.barrier()


def remakes_its_groups(rank: int, world_size: int) -> None:
    pair = dist.new_group([0, 1])
    if rank < 2:
        for _ in range(3):
            dist.all_reduce(torch.ones(1), group=pair)
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.PrefixStore("again", store), rank=rank, world_size=world_size)
    pair = dist.new_group([0, 2])
    if rank != 1:
        time.sleep(0.4 * rank / 2)
        dist.all_reduce(torch.ones(5), group=pair)


def untraced_group(rank: int, world_size: int) -> None:
    group = dist.distributed_c10d._get_default_group()._inner  # type: ignore[attr-defined]
    if rank:
        time.sleep(0.6)
    group.allreduce([torch.ones(2)]).wait()


def reads_for_ever(rank: int, world_size: int) -> None:
    if rank == 1:
        os.read(os.pipe()[0], 1)
    dist.all_reduce(torch.ones(4))
