"""Shows exceptions in a way of its own, and reads its data in other processes."""

import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
sys.excepthook = lambda kind, error, trace: print("pretty:", error, file=sys.stderr)
for (rows,) in DataLoader(TensorDataset(torch.ones(8, 3)), batch_size=4, num_workers=1):
    dist.all_reduce(rows)
if dist.get_rank() == 1:
    raise OSError("disk full")  # the fault
dist.barrier()
