"""A DDP script as people have them; the last line that rank 0 prints is how long its steps took."""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

NUM_STEPS = 60
WIDTH = 256

dist.init_process_group("gloo")
torch.manual_seed(0)
layers = [layer for _ in range(6) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(WIDTH, 10)))
optimizer = torch.optim.AdamW(model.parameters())
rows, labels = torch.randn(64, WIDTH), torch.randint(0, 10, (64,))
dist.barrier()
began = time.perf_counter()
for _ in range(NUM_STEPS):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(rows), labels).backward()
    optimizer.step()
dist.barrier()
if os.environ["RANK"] == "0":
    print(f"{time.perf_counter() - began:.6f}")
dist.destroy_process_group()
