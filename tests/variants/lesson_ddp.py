"""The lesson's wrapper: broadcast at construction, one all-reduce for each parameter after backward, then ``div_``."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

SEED = 7


def setup(rank, world_size, init_file):
    dist.init_process_group(backend="gloo", init_method=f"file://{init_file}", rank=rank, world_size=world_size)


class DistributedDataParallel(nn.Module):
    def __init__(self, module, world_size):
        super().__init__()
        self.module = module
        self.world_size = world_size
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.numel():
                dist.broadcast(tensor.data, src=0)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def sync_grads(self):
        for p in self.module.parameters():
            if not p.requires_grad or p.numel() == 0:
                continue
            if p.grad is None:  # unused here: zeros, so that no rank waits for this one
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad.data, op=dist.ReduceOp.SUM)
            p.grad.data.div_(self.world_size)


def worker(rank, world_size, init_file, make_model, inputs, targets, steps, batch, lr):
    setup(rank, world_size, init_file)
    torch.manual_seed(SEED)
    ddp = DistributedDataParallel(make_model(), world_size=world_size)
    optim = torch.optim.SGD(ddp.parameters(), lr=lr)
    for step in range(steps):
        offset = step * world_size * batch + rank * batch
        x, y = inputs[offset : offset + batch], targets[offset : offset + batch]
        optim.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(ddp(x), y)
        loss.backward()
        ddp.sync_grads()
        optim.step()
    dist.destroy_process_group()
    return ddp
