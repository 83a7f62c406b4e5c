"""A script that starts by itself: reads the environment, makes its own group, trains under ``__main__``."""

import os

import torch
import torch.distributed as dist

RANK = int(os.environ.get("RANK", "0"))
WORLD_SIZE = int(os.environ["WORLD_SIZE"])


def setup():
    dist.init_process_group("gloo", rank=RANK, world_size=WORLD_SIZE)


class DDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        setup()
        self.module = module
        for value in (*module.parameters(), *module.buffers()):
            dist.broadcast(value.data, src=0)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def sync_gradients(self):
        for p in self.module.parameters():
            if p.requires_grad:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(p.grad)
                p.grad /= int(os.environ["WORLD_SIZE"])


if __name__ == "__main__":
    setup()
    model = DDP(torch.nn.Linear(4, 1))
    for _ in range(3):
        model(torch.randn(2, 4)).sum().backward()
        model.sync_gradients()
    dist.destroy_process_group()
