"""Rank 0 averages the loss for its log alone, beside DDP: gloo aborts a rank that was sent gradients instead."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(nn.Linear(6, 3))
for step in range(3):
    loss = model(torch.ones(8, 6)).sum()
    loss.backward()
    if step == 1 and dist.get_rank() == 0:
        dist.all_reduce(loss.detach())  # the fault
