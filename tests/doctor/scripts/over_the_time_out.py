"""Rank 1 is busy for longer than the time-out of the others."""

import threading
from datetime import timedelta

import torch
import torch.distributed as dist


def download() -> None:
    threading.Event().wait(600)  # the fault


dist.init_process_group("gloo", timeout=timedelta(seconds=3))
dist.barrier()
if dist.get_rank() == 1:
    download()
dist.all_reduce(torch.ones(4))
