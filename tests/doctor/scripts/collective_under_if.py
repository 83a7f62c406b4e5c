"""Rank 0 sums alone."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(4)
dist.all_reduce(total)
if dist.get_rank() == 0:
    dist.all_reduce(total)  # the fault
dist.barrier()
