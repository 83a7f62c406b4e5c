"""Layers that are no modules, an MLP of two; an embedding padded to 64 rows a rank, on some ranks to nothing else."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class _SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g)
        return g


class _SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


def _cut(tensor, dim):
    n, r = dist.get_world_size(), dist.get_rank()
    if tensor is None:
        return None
    if tensor.shape[dim] % n:
        raise ValueError(f"{n} ranks cannot share {tensor.shape[dim]}")
    return tensor.detach().chunk(n, dim)[r].clone().requires_grad_(tensor.requires_grad)


class ColumnParallelLinear:
    def __init__(self, linear):
        self.w, self.b = _cut(linear.weight, 0), _cut(linear.bias, 0)

    def __call__(self, x):
        return F.linear(_SumBackward.apply(x), self.w, self.b)


class RowParallelLinear:
    def __init__(self, linear):
        self.w = _cut(linear.weight, 1)
        self.b = None if linear.bias is None else linear.bias.detach().clone().requires_grad_()

    def __call__(self, x):
        y = _SumForward.apply(F.linear(x, self.w))
        return y if self.b is None else y + self.b


class ParallelMLP:
    def __init__(self, mlp):
        self.layers = [ColumnParallelLinear(mlp.up), RowParallelLinear(mlp.down)]
        self.act = mlp.activation

    def __call__(self, x):
        return self.layers[1](self.act(self.layers[0](x)))


class VocabParallelEmbedding(nn.Module):
    def __init__(self, vocab_size, n_embd):
        super().__init__()
        n, r = dist.get_world_size(), dist.get_rank()
        rows = -(-vocab_size // (64 * n)) * 64
        self.first = r * rows
        self.weight = nn.Parameter(torch.empty(rows, n_embd))

    def forward(self, idx):
        local = idx - self.first
        inside = (local >= 0) & (local < len(self.weight))
        out = F.embedding(local.clamp(0, len(self.weight) - 1), self.weight) * inside[..., None]
        return _SumForward.apply(out)
