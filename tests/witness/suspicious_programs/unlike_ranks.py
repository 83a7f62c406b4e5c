"""Ranks that do different things between their collectives."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from tests.witness.suspicious_programs.entering import LATE_S, compute, first, on, ones


@on(3)
def rank_dependent_work_without_collectives(rank: int, world_size: int, folder: Path) -> None:
    for _ in range(first(rank)):
        compute(0.1)


@on(3)
def different_numbers_of_microbatches_before_one_sum(rank: int, world_size: int, folder: Path) -> None:
    weight = nn.Parameter(ones())
    for _ in range(first(rank)):
        (weight * (rank + 1)).sum().backward()  # type: ignore[no-untyped-call]
    dist.all_reduce(weight.grad)
    assert weight.grad is not None
    assert weight.grad.tolist() == [1 + 6 + 15] * 4


@on(2)
def long_computation_on_one_rank(rank: int, world_size: int, folder: Path) -> None:
    if rank == 1:
        compute(2 * LATE_S)
    dist.all_reduce(ones())


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
            dist.send(ones(), 1)
        else:
            dist.recv(ones(), 0)


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
    dist.all_reduce(ones())


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
        dist.send(ones(), 0)
        return
    if rank == 0:
        dist.recv(ones(), 2)
        time.sleep(LATE_S)
        dist.send(ones(), 1)
    else:
        dist.recv(ones(), 0)
