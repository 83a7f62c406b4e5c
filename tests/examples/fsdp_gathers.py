"""Told to gather before its forward pass and to reduce after backward: all of it is whole in between, as one unit."""

import torch
import torch.distributed as dist


class NaiveFSDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.inner = [module]  # in a list: its own parameters are the shards
        self.whole = list(module.parameters())
        self.shapes = [p.shape for p in self.whole]
        self.shards = torch.nn.ParameterList(
            torch.nn.Parameter(self.cut(p.detach()).clone(), requires_grad=p.requires_grad) for p in self.whole
        )
        self.free()

    @staticmethod
    def cut(tensor):
        n = dist.get_world_size()
        size = -(-tensor.numel() // n)
        flat = torch.nn.functional.pad(tensor.reshape(-1), (0, n * size - tensor.numel()))
        return flat.split(size)[dist.get_rank()]

    def free(self):
        for p in self.whole:
            p.data = torch.empty(0, dtype=p.dtype)

    def gather(self):
        for p, shard, shape in zip(self.whole, self.shards, self.shapes, strict=True):
            parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, shard.detach())
            p.data = torch.cat(parts)[: shape.numel()].view(shape)

    def forward(self, *inputs):
        out = self.inner[0](*inputs)
        if not torch.is_grad_enabled():
            self.free()
        return out

    def finish_gradient_synchronization(self):
        for p, shard in zip(self.whole, self.shards, strict=True):
            if p.grad is not None:
                dist.all_reduce(p.grad)
                mine = self.cut(p.grad / dist.get_world_size()).clone()
                shard.grad = mine if shard.grad is None else shard.grad + mine
                p.grad = None
        self.free()
