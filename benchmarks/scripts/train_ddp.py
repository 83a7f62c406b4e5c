"""A DDP script as people have them; the last line that rank 0 prints is the fastest of its blocks of steps, in s."""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

NUM_BLOCKS, NUM_STEPS = 10, 15
WIDTH = 256

dist.init_process_group("gloo")
torch.manual_seed(0)
layers = [layer for _ in range(6) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(WIDTH, 10)))
optimizer = torch.optim.AdamW(model.parameters())
rows, labels = torch.randn(64, WIDTH), torch.randint(0, 10, (64,))
blocks = []
for _ in range(NUM_BLOCKS):
    dist.barrier()
    began = time.perf_counter()
    for _ in range(NUM_STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
    dist.barrier()
    blocks.append(time.perf_counter() - began)
if os.environ["RANK"] == "0":
    print(f"{min(blocks):.6f}")
dist.destroy_process_group()
