"""Each rank's optimizer has every third parameter, and the last one is not given to the other ranks."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
parameters = list(model.parameters())
optimizer = torch.optim.SGD(parameters[rank::world_size], lr=0.1)
torch.manual_seed(rank)
for _ in range(6):
    model.zero_grad()
    model(torch.randn(5, 8)).square().mean().backward()
    for parameter in parameters:
        dist.all_reduce(parameter.grad)
        parameter.grad /= world_size
    optimizer.step()
    for number, parameter in enumerate(parameters[:-1]):  # the fault
        dist.broadcast(parameter.data, src=number % world_size)
dist.destroy_process_group()
