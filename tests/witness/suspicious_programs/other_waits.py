"""Other ways to wait than in a collective, and DistributedDataParallel with ranks that differ."""

from __future__ import annotations

import concurrent.futures
import queue
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tests.witness.suspicious_programs.entering import LATE_S, compute, first, on, ones

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
            tensor = ones()
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
    dist.all_reduce(ones())


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
            for _ in range(first(rank)):
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
        compute(LATE_S)
    model(torch.ones(2, 4)).sum().backward()
