"""Programs that are right and look as if something were wrong: ``program(rank, world_size, folder)``, no pytest here.

As a script (``python -m tests.witness.suspicious NAME...``) each rank runs those named, one after the other.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import io
import logging
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

Program = Callable[[int, int, Path], None]
PROGRAMS: dict[str, tuple[Program, int]] = {}  # by name, with the number of ranks
LATE_S = 0.4  # several times what a verdict takes


def on(world_size: int) -> Callable[[Program], Program]:
    """Enter a program into `PROGRAMS`."""

    def enter(program: Program) -> Program:
        PROGRAMS[program.__name__] = program, world_size
        return program

    return enter


def _compute(seconds: float) -> None:
    until = time.monotonic() + seconds
    matrix = torch.eye(64)
    while time.monotonic() < until:
        matrix = matrix @ matrix


def _ones(numel: int = 4) -> Tensor:
    return torch.ones(numel)


def _first(rank: int) -> int:
    """A number of microbatches that depends on the rank."""
    return 1 + 2 * rank


# -- ranks that do different things ------------------------------------------------------------------------------------


@on(3)
def rank_dependent_work_without_collectives(rank: int, world_size: int, folder: Path) -> None:
    for _ in range(_first(rank)):
        _compute(0.1)


@on(3)
def different_numbers_of_microbatches_before_one_sum(rank: int, world_size: int, folder: Path) -> None:
    weight = nn.Parameter(_ones())
    for _ in range(_first(rank)):
        (weight * (rank + 1)).sum().backward()  # type: ignore[no-untyped-call]
    dist.all_reduce(weight.grad)
    assert weight.grad is not None
    assert weight.grad.tolist() == [1 + 6 + 15] * 4


@on(2)
def long_computation_on_one_rank(rank: int, world_size: int, folder: Path) -> None:
    if rank == 1:
        _compute(2 * LATE_S)
    dist.all_reduce(_ones())


@on(3)
def barrier_with_a_slow_rank(rank: int, world_size: int, folder: Path) -> None:
    if rank == 2:
        time.sleep(LATE_S)
    dist.barrier()


@on(3)
def monitored_barrier_with_a_slow_rank(rank: int, world_size: int, folder: Path) -> None:
    time.sleep(LATE_S * rank / 2)
    dist.monitored_barrier(timeout=timedelta(seconds=60))


@on(2)
def rank_that_sleeps_between_messages(rank: int, world_size: int, folder: Path) -> None:
    for _ in range(2):
        if rank == 0:
            time.sleep(LATE_S)
            dist.send(_ones(), 1)
        else:
            dist.recv(_ones(), 0)


@on(3)
def rank_zero_logs_and_writes_files(rank: int, world_size: int, folder: Path) -> None:
    if rank == 0:
        log = logging.getLogger("suspicious")
        log.addHandler(logging.StreamHandler(io.StringIO()))
        for step in range(20):
            log.warning("step %d", step)
        with tempfile.TemporaryFile(dir=folder) as file:
            for _ in range(20):
                file.write(bytes(1 << 18))
                file.flush()
                os.fsync(file.fileno())
    dist.all_reduce(_ones())


@on(3)
def rank_zero_saves_what_all_load(rank: int, world_size: int, folder: Path) -> None:
    path = folder / "suspicious.pt"
    if rank == 0:
        torch.save({"weight": torch.arange(1 << 16)}, path)
        time.sleep(LATE_S)
    dist.barrier()
    assert len(torch.load(path)["weight"]) == 1 << 16
    dist.barrier()
    if rank == 0:
        path.unlink()


@on(2)
def rank_zero_waits_for_a_child_process(rank: int, world_size: int, folder: Path) -> None:
    if rank == 0:
        subprocess.run(["sleep", str(LATE_S)], check=True)
    dist.barrier()


@on(3)
def rank_that_is_done_early(rank: int, world_size: int, folder: Path) -> None:
    if rank == 2:
        dist.send(_ones(), 0)
        return
    if rank == 0:
        dist.recv(_ones(), 2)
        time.sleep(LATE_S)
        dist.send(_ones(), 1)
    else:
        dist.recv(_ones(), 0)


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
    arrived = _ones(), _ones()
    operations = [
        dist.P2POp(dist.isend, _ones(), right),
        dist.P2POp(dist.irecv, arrived[0], left),
        dist.P2POp(dist.isend, _ones(), left),
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

    assert summed(_ones(), 1).tolist() == [world_size] * 4


@on(3)
def pipeline_with_sends_in_the_background(rank: int, world_size: int, folder: Path) -> None:
    works = []
    for number in range(6):
        activation = torch.full((256,), float(number))
        if rank:
            dist.recv(activation, rank - 1)
        _compute(0.02 * (rank + 1))
        if rank < world_size - 1:
            works.append((dist.isend(activation, rank + 1), activation))
    for work, _ in works:
        assert work is not None
        work.wait()


# -- operations under way ----------------------------------------------------------------------------------------------


@on(3)
def async_work_waited_for_late(rank: int, world_size: int, folder: Path) -> None:
    works = [dist.all_reduce(_ones(1 << 12), async_op=True) for _ in range(10)]
    _compute(LATE_S if rank == 1 else 0.01)
    for work in reversed(works):
        assert work is not None
        work.wait()


@on(2)
def work_that_is_polled(rank: int, world_size: int, folder: Path) -> None:
    if rank:
        time.sleep(LATE_S)
    work = dist.all_reduce(_ones(), async_op=True)
    assert work is not None
    while not work.is_completed():
        time.sleep(0.01)


@on(2)
def futures_with_callbacks(rank: int, world_size: int, folder: Path) -> None:
    if rank:
        time.sleep(LATE_S)
    work = dist.all_reduce(_ones(), async_op=True)
    assert work is not None
    halved = work.get_future().then(lambda future: future.value()[0] / 2)
    assert halved.wait().tolist() == [1.0] * 4


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
    dist.gather(_ones(), [_ones() for _ in range(world_size)] if rank == 1 else None, dst=1)


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
        dist.reduce(_ones(), dst)


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
        dist.all_reduce(_ones())


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
        dist.all_reduce(_ones(rank // 2 + 1), group=pairs[rank // 2])
    if rank >= 2:
        _compute(LATE_S)
    dist.barrier()


@on(4)
def rows_and_columns_of_a_mesh(rank: int, world_size: int, folder: Path) -> None:
    rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    columns = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    for _ in range(3):
        dist.all_reduce(_ones(), group=rows[rank // 2])
        dist.broadcast(_ones(), src=rank % 2, group=columns[rank % 2])


@on(3)
def group_that_is_destroyed_and_made_again(rank: int, world_size: int, folder: Path) -> None:
    for _ in range(3):
        group = dist.new_group([0, 2])
        if rank != 1:
            dist.all_reduce(_ones(), group=group)
            dist.destroy_process_group(group)
    dist.barrier()


# -- other ways to wait ------------------------------------------------------------------------------------------------


@on(2)
def ranks_that_meet_in_the_store(rank: int, world_size: int, folder: Path) -> None:
    store: Any = dist.distributed_c10d._get_default_store()
    if rank == 0:
        time.sleep(LATE_S)
        store.set("suspicious/ready", "yes")
    else:
        store.wait(["suspicious/ready"], timedelta(seconds=60))
    dist.barrier()
    if rank == 0:
        store.delete_key("suspicious/ready")
    dist.barrier()


@on(2)
def helper_thread_that_communicates(rank: int, world_size: int, folder: Path) -> None:
    group = dist.new_group([0, 1])
    come: queue.Queue[float] = queue.Queue()

    def help_out() -> None:
        for _ in range(3):
            tensor = _ones()
            if rank == 1:
                time.sleep(LATE_S / 3)
            dist.all_reduce(tensor, group=group)
            come.put(float(tensor[0]))

    helper = threading.Thread(target=help_out)
    helper.start()
    assert [come.get() for _ in range(3)] == [2.0] * 3  # the main thread waits for its own thread
    helper.join()
    dist.barrier()


@on(2)
def pool_of_threads_that_read(rank: int, world_size: int, folder: Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        waits = [pool.submit(time.sleep, LATE_S if rank == 0 else 0.0) for _ in range(3)]
        concurrent.futures.wait(waits)
    dist.all_reduce(_ones())


@on(2)
def batches_from_worker_processes(rank: int, world_size: int, folder: Path) -> None:
    data = TensorDataset(torch.arange(8.0))
    for (rows,) in DataLoader(data, batch_size=4, num_workers=1 + rank):
        dist.all_reduce(rows.sum())


# -- DistributedDataParallel -------------------------------------------------------------------------------------------


class _Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor, both: bool = True) -> Tensor:
        x = self.first(x)
        return self.second(x) if both else x


def _ddp(**options: bool) -> nn.parallel.DistributedDataParallel:
    return nn.parallel.DistributedDataParallel(_Branches(), **options)  # type: ignore[arg-type]  # flags only


@on(2)
def nested_no_sync(rank: int, world_size: int, folder: Path) -> None:
    model = _ddp()
    with model.no_sync():
        model(torch.ones(2, 4)).sum().backward()
        with model.no_sync():
            for _ in range(_first(rank)):
                model(torch.ones(2, 4)).sum().backward()
    model(torch.ones(2, 4)).sum().backward()


@on(2)
def parameters_that_some_ranks_do_not_use(rank: int, world_size: int, folder: Path) -> None:
    model = _ddp(find_unused_parameters=True)
    for step in range(3):
        model(torch.ones(2, 4), both=(step + rank) % 2 == 0).sum().backward()


@on(2)
def uneven_inputs_under_join(rank: int, world_size: int, folder: Path) -> None:
    model = _ddp()
    with model.join():
        for _ in range(2 + 2 * rank):
            model(torch.ones(2, 4)).sum().backward()


@on(2)
def evaluation_on_rank_zero_alone(rank: int, world_size: int, folder: Path) -> None:
    model = _ddp()
    model(torch.ones(2, 4)).sum().backward()
    if rank == 0:
        with torch.no_grad():
            model.module(torch.ones(8, 4))
        _compute(LATE_S)
    model(torch.ones(2, 4)).sum().backward()


def run_named(name: str, rank: int, world_size: int, folder: Path) -> None:
    """One program, by name."""
    PROGRAMS[name][0](rank, world_size, folder)


@contextlib.contextmanager
def _group() -> Iterator[tuple[int, int]]:
    dist.init_process_group("gloo")
    yield dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()


@cache
def names_for(world_size: int) -> list[str]:
    """The programs that want so many ranks."""
    return [name for name, (_, size) in PROGRAMS.items() if size == world_size]


if __name__ == "__main__":
    with _group() as (own_rank, size):
        for each in sys.argv[1:] or names_for(size):
            run_named(each, own_rank, size, Path(tempfile.gettempdir()))
            dist.barrier()  # whoever is done must not send into a program of the others
