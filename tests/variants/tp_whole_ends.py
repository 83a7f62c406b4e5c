"""Layers without options: whole tensors at both ends, an embedding cut by its width, objects that are no modules."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, -1)

    @staticmethod
    def backward(ctx, g):
        return g.chunk(dist.get_world_size(), -1)[dist.get_rank()]


class Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.chunk(dist.get_world_size(), -1)[dist.get_rank()]

    @staticmethod
    def backward(ctx, g):
        return Gather.apply(g)


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g)
        return g


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


def _part(tensor, dim):
    n = dist.get_world_size()
    if tensor.shape[dim] % n:
        raise ValueError(f"{tuple(tensor.shape)} along {dim} on {n} ranks")
    return tensor.detach().chunk(n, dim)[dist.get_rank()].clone().requires_grad_(tensor.requires_grad)


class TPLinear:
    def __init__(self, lin):
        self.weight = _part(lin.weight, 0)
        self.bias = None if lin.bias is None else _part(lin.bias, 0)

    def __call__(self, x):
        return Gather.apply(F.linear(Copy.apply(x), self.weight, self.bias))


class RowTPLinear:
    def __init__(self, lin):
        self.weight = _part(lin.weight, 1)
        self.bias = None if lin.bias is None else lin.bias.detach().clone().requires_grad_(lin.bias.requires_grad)

    def __call__(self, x):
        y = Reduce.apply(F.linear(Scatter.apply(x), self.weight))
        return y if self.bias is None else y + self.bias


class ParallelEmbedding(torch.nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        n = dist.get_world_size()
        assert dim % n == 0
        self.weight = torch.nn.Parameter(torch.randn(vocab_size, dim // n))

    def forward(self, ids):
        return Gather.apply(F.embedding(ids, self.weight))
