"""Rank 1 brings a shorter tensor."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    dist.all_reduce(torch.ones(64))  # the fault
else:
    dist.all_reduce(torch.ones(4096))
dist.barrier()
