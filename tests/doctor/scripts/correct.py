"""Correct, however it looks: shards, sums of activations, uneven exchanges, sub-groups, late waits, local steps."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()


def steps(module: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(3):
        optimizer.zero_grad()
        module(torch.randn(4, 6, generator=generator)).square().mean().backward()
        optimizer.step()


class RowParallel(nn.Module):
    """Each rank has its own part of the weight; what is summed is the output."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Parameter(torch.full((6, 6), 0.1 * (rank + 1)))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        out = rows @ self.part
        with torch.no_grad():
            others = out.clone()
            dist.all_reduce(others)
        return out + (others - out).detach()


replica = DistributedDataParallel(nn.Linear(6, 3))
steps(replica, ZeroRedundancyOptimizer(replica.parameters(), torch.optim.Adam, lr=0.1), seed=rank)
parallel = RowParallel()
steps(parallel, torch.optim.SGD(parallel.parameters(), lr=0.1), seed=0)
joined = DistributedDataParallel(nn.Linear(6, 3))  # the others go on without rank 0, and all end with one model
descent = torch.optim.SGD(joined.parameters(), lr=0.1)
with Join([joined]):
    for _ in range(rank + 1):
        steps(joined, descent, seed=rank)
local = nn.Linear(6, 3)  # steps of its own, an average at the end
steps(local, torch.optim.SGD(local.parameters(), lr=0.1), seed=rank)
for parameter in local.parameters():
    dist.all_reduce(parameter.data, op=dist.ReduceOp.AVG)
if rank == 0:
    time.sleep(0.5)  # work of one rank, others wait
halves = [dist.new_group([0]), dist.new_group(list(range(1, world_size)))]
dist.all_reduce(torch.ones(rank + 2), group=halves[min(rank, 1)]) if rank != 2 else dist.all_reduce(
    torch.ones(3), group=halves[1]
)
sent = [(rank + other) % world_size + 1 for other in range(world_size)]
dist.all_to_all_single(torch.empty(sum(sent)), torch.ones(sum(sent)), sent, sent)
late = dist.all_reduce(torch.ones(1000), async_op=True)
dist.broadcast(torch.ones(3), src=1)
late.wait()
ahead, behind = (rank + 1) % world_size, (rank - 1) % world_size
exchange = [dist.P2POp(dist.isend, torch.ones(5), ahead), dist.P2POp(dist.irecv, torch.ones(5), behind)]
for work in dist.batch_isend_irecv(exchange if rank % 2 else exchange[::-1]):
    work.wait()
with replica.no_sync():
    replica(torch.ones(4, 6)).sum().backward()
dist.barrier()
dist.destroy_process_group()
