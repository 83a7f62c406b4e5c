"""Rank 1 ends in the middle of DDP training, past everything that Python would do at an end."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(nn.Linear(6, 3))
for step in range(4):
    if step == 2 and dist.get_rank() == 1:
        os._exit(4)  # the fault
    model(torch.ones(8, 6)).sum().backward()  # the others wait in C++
