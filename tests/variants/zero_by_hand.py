"""The lesson's form: a module, a learning rate, and Adam written out on this rank's part of one flat vector."""

from __future__ import annotations

import torch
import torch.distributed as dist


class ZeroOptimizer:
    def __init__(self, model, world_size, rank, lr):
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.n, self.rank, self.lr = world_size, rank, lr
        numel = sum(p.numel() for p in self.params)
        self.part = -(-numel // world_size)
        self.m = torch.zeros_like(self.flat(self.params)[rank])
        self.v = torch.zeros_like(self.m)
        self.t = 0

    def flat(self, tensors):
        whole = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        return torch.nn.functional.pad(whole, (0, self.n * self.part - whole.numel())).split(self.part)

    @torch.no_grad()
    def step(self):
        gradient = torch.empty_like(self.m)
        sent = [chunk.contiguous() for chunk in self.flat([_gradient(p) for p in self.params])]
        dist.reduce_scatter(gradient, sent)
        gradient /= self.n
        self.t += 1
        self.m.lerp_(gradient, 1 - 0.9)
        self.v.lerp_(gradient * gradient, 1 - 0.999)
        size = (self.v / (1 - 0.999**self.t)).sqrt() + 1e-8
        new = self.flat(self.params)[self.rank] - self.lr * self.m / (1 - 0.9**self.t) / size
        parts = [torch.empty_like(self.m) for _ in range(self.n)]
        dist.all_gather(parts, new)
        numels = [p.numel() for p in self.params]
        for p, values in zip(self.params, torch.cat(parts)[: sum(numels)].split(numels), strict=True):
            p.copy_(values.view(p.shape))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


def _gradient(p):
    return torch.zeros_like(p) if p.grad is None else p.grad
