"""Rank 1 takes a lock twice: no operation is at fault, and all wait for it."""

import threading

import torch
import torch.distributed as dist

lock = threading.Lock()


def log(text: str) -> None:
    with lock:
        print(text)


dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    lock.acquire()
    log("saved")  # takes it again
dist.all_reduce(torch.ones(4))
