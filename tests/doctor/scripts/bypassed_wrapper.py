"""From step 3 on rank 1 trains past its DistributedDataParallel: nobody waits, and it goes a way of its own."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for step in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 6)).square().mean().backward()
    if step == 3 and dist.get_rank() == 1:
        model.module.weight.grad.mul_(2)
    optimizer.step()
dist.barrier()
