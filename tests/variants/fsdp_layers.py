"""Fully sharded, layer by layer: an autograd function gathers forward and reduce-scatters backward.

Each parameter is a padded shard under its own name, and whole while its layer computes.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, shape):
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard.detach())
        return torch.cat(parts)[: shape.numel()].view(shape)

    @staticmethod
    def backward(ctx, gradient):
        n = dist.get_world_size()
        part = -(-gradient.numel() // n)
        flat = nn.functional.pad(gradient.reshape(-1), (0, n * part - gradient.numel()))
        mine = gradient.new_empty(part)
        dist.reduce_scatter(mine, [chunk.contiguous() for chunk in flat.split(part)])
        return mine / n, None


class FSDP(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        shards = {}  # a tied parameter is one shard under two names
        for layer in module.modules():
            shapes = {}
            for name, p in layer._parameters.items():
                if p is not None and p.numel():
                    shapes[name] = p.shape
                    layer._parameters[name] = shards.setdefault(p, self.shard(p))
            if shapes:
                layer.forward = self.gathering(layer, layer.forward, shapes)
                layer.shapes = shapes

    @staticmethod
    def shard(p):
        part = -(-p.numel() // dist.get_world_size())
        flat = nn.functional.pad(p.detach().reshape(-1), (0, dist.get_world_size() * part - p.numel()))
        return nn.Parameter(flat.split(part)[dist.get_rank()].clone(), requires_grad=p.requires_grad)

    @staticmethod
    def gathering(layer, forward, shapes):
        def run(*args, **kwargs):
            held = {name: layer._parameters.pop(name) for name in shapes}
            try:
                for name, shape in shapes.items():
                    layer.__dict__[name] = Gather.apply(held[name], shape)
                return forward(*args, **kwargs)
            finally:
                for name in shapes:
                    layer.__dict__.pop(name, None)
                layer._parameters.update(held)

        return run

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def full_parameters(self):
        found = {}
        for prefix, layer in self.module.named_modules():
            for name, p in layer._parameters.items():
                if p is None:
                    continue
                shape = getattr(layer, "shapes", {}).get(name)
                whole = p if shape is None else Gather.apply(p, shape)
                found[f"{prefix}.{name}".lstrip(".")] = whole.detach()
        return found

    def clip_grad_norm_(self, max_norm):
        grads = [p.grad for p in self.parameters() if p.grad is not None]
        square = sum(g.square().sum() for g in grads)
        dist.all_reduce(square)
        norm = square.sqrt()
        for g in grads:
            g *= (max_norm / norm).clamp(max=1)
        return norm
