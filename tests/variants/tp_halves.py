"""Sums in two halves, reduce-scatter and all-gather; uneven parts; weights kept as (in, out); no nn.Linear anywhere."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn


def _sum(x, group):
    n = dist.get_world_size(group)
    flat = x.detach().reshape(-1)
    padded = torch.cat([flat, flat.new_zeros(-len(flat) % n)])
    mine = torch.empty(len(padded) // n, dtype=x.dtype)
    dist.reduce_scatter(mine, list(padded.clone().chunk(n)), group=group)
    parts = [torch.empty_like(mine) for _ in range(n)]
    dist.all_gather(parts, mine, group=group)
    return torch.cat(parts)[: len(flat)].view(x.shape)


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return _sum(g, ctx.group), None


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return _sum(x, group)

    @staticmethod
    def backward(ctx, g):
        return g, None


def bounds(size, rank, n):
    """The first `size % n` ranks have one more."""
    small, more = divmod(size, n)
    start = rank * small + min(rank, more)
    return slice(start, start + small + (rank < more))


class ColwiseLinear(nn.Module):
    def __init__(self, linear, rank, world_size, group=None):
        super().__init__()
        mine = bounds(linear.out_features, rank, world_size)
        self.w = nn.Parameter(linear.weight.detach()[mine].T.clone(), requires_grad=linear.weight.requires_grad)
        self.b = None
        if linear.bias is not None:
            self.b = nn.Parameter(linear.bias.detach()[mine].clone(), requires_grad=linear.bias.requires_grad)
        self.group = group

    def forward(self, x):
        y = Enter.apply(x, self.group) @ self.w
        return y if self.b is None else y + self.b


class RowwiseLinear(nn.Module):
    def __init__(self, linear, rank, world_size, group=None):
        super().__init__()
        mine = bounds(linear.in_features, rank, world_size)
        self.w = nn.Parameter(linear.weight.detach()[:, mine].T.clone(), requires_grad=linear.weight.requires_grad)
        self.b = None
        if linear.bias is not None and rank == world_size - 1:  # one rank has it, and adds it
            self.b = nn.Parameter(linear.bias.detach().clone(), requires_grad=linear.bias.requires_grad)
        self.group = group

    def forward(self, x):
        y = x @ self.w
        return Leave.apply(y if self.b is None else y + self.b, self.group)


class TPEmbedding(nn.Module):
    def __init__(self, embedding, rank, world_size, group=None):
        super().__init__()
        self.mine = bounds(embedding.num_embeddings, rank, world_size)
        padded = torch.cat([embedding.weight.detach()[self.mine], torch.zeros(1, embedding.embedding_dim)])
        self.rows = nn.Parameter(padded)  # the last one is for the ids of others
        self.group = group

    def forward(self, ids):
        count = len(self.rows) - 1
        local = torch.where((ids >= self.mine.start) & (ids < self.mine.stop), ids - self.mine.start, count)
        vectors = self.rows[local] * (local < count).unsqueeze(-1)
        return Leave.apply(vectors, self.group)


class TPMLP(nn.Module):
    def __init__(self, mlp, rank, world_size, group=None):
        super().__init__()
        self.down = RowwiseLinear(mlp.down, rank, world_size, group)
        self.up = ColwiseLinear(mlp.up, rank, world_size, group)
        self.act = mlp.activation

    def forward(self, x):
        return self.down(self.act(self.up(x)))


class TPAttention(nn.Module):
    """Fused: q, k and v of this rank's heads one below the other in one matrix. Heads are shared unevenly, too."""

    def __init__(self, attention, rank, world_size, group=None):
        super().__init__()
        heads = bounds(attention.num_heads, rank, world_size)
        self.hd, self.group = attention.head_dim, group
        mine = slice(heads.start * self.hd, heads.stop * self.hd)
        layers = (attention.q, attention.k, attention.v)
        self.qkv = nn.Parameter(torch.cat([layer.weight.detach()[mine] for layer in layers]))
        self.qkv_bias = None
        if attention.q.bias is not None:
            self.qkv_bias = nn.Parameter(torch.cat([layer.bias.detach()[mine] for layer in layers]))
        self.o = nn.Parameter(attention.out.weight.detach()[:, mine].clone())
        self.o_bias = None if attention.out.bias is None else nn.Parameter(attention.out.bias.detach().clone())
        self.p = attention.dropout.p
        self.generator = torch.Generator()
        self.generator.manual_seed(1234 + rank)

    def forward(self, x):
        b, t, _ = x.shape
        x = Enter.apply(x, self.group)
        qkv = nn.functional.linear(x, self.qkv, self.qkv_bias)
        q, k, v = (part.view(b, t, -1, self.hd).transpose(1, 2) for part in qkv.chunk(3, -1))
        if self.training and self.p:
            weights = (q @ k.mT / self.hd**0.5).softmax(-1)
            keep = torch.rand(weights.shape, generator=self.generator) >= self.p
            y = (weights * keep / (1 - self.p)) @ v
        else:
            y = nn.functional.scaled_dot_product_attention(q, k, v)
        y = nn.functional.linear(y.transpose(1, 2).reshape(b, t, -1), self.o)
        y = Leave.apply(y, self.group)
        return y if self.o_bias is None else y + self.o_bias
