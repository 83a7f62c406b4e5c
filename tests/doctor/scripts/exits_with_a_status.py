"""Rank 1 gives up with a status of its own, and no word."""

import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    sys.exit(3)  # the fault
dist.all_reduce(torch.ones(4))
