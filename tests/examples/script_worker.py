"""A script's own ``worker(rank, world_size)`` beside a wrapper: it trains what it makes itself, and is not examined."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from script_main import DDP


def worker(rank, world_size):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500")
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(4, 1))
    model(torch.randn(2, 4)).sum().backward()
    model.sync_gradients()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(2,), nprocs=2)
