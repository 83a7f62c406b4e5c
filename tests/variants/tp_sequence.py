"""Sequence parallelism with torch's functional collectives, and a call after backward that sums what is left to sum."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F
from torch import nn


class _Gather(torch.autograd.Function):
    """Along the sequence; what is kept for backward is the part, and it is gathered once more there."""

    @staticmethod
    def forward(ctx, x, weight, bias, dim, group):
        ctx.save_for_backward(x, weight)
        ctx.dim, ctx.group, ctx.has_bias = dim, group, bias is not None
        whole = funcol.all_gather_tensor(x.contiguous(), dim, group).clone()
        return F.linear(whole, weight, bias)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        whole = funcol.all_gather_tensor(x.contiguous(), ctx.dim, ctx.group).clone()
        grad_x = funcol.reduce_scatter_tensor((g @ weight).contiguous(), "sum", ctx.dim, ctx.group).clone()
        flat = g.flatten(0, -2)
        grad_weight = flat.T @ whole.flatten(0, -2) if ctx.needs_input_grad[1] else None
        grad_bias = flat.sum(0) if ctx.has_bias and ctx.needs_input_grad[2] else None
        return grad_x, grad_weight, grad_bias, None, None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim, group):
        ctx.dim, ctx.group = dim, group
        return funcol.reduce_scatter_tensor(x.contiguous(), "sum", dim, group).clone()

    @staticmethod
    def backward(ctx, g):
        return funcol.all_gather_tensor(g.contiguous(), ctx.dim, ctx.group).clone(), None, None


def _cut(p, dim, group):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    if p.shape[dim] % n:
        raise ValueError(f"{n} does not divide {p.shape[dim]}")
    return nn.Parameter(p.detach().tensor_split(n, dim)[r].clone(), requires_grad=p.requires_grad)


class ColumnParallelLinear(nn.Module):
    def __init__(self, linear, group=None, sequence_parallel=False, seq_dim=1):
        super().__init__()
        self.group, self.sp, self.dim = group or dist.group.WORLD, sequence_parallel, seq_dim
        self.weight = _cut(linear.weight, 0, group)
        self.bias = None if linear.bias is None else _cut(linear.bias, 0, group)

    def forward(self, x):
        if self.sp:
            return _Gather.apply(x, self.weight, self.bias, self.dim, self.group)
        return F.linear(_identity(x, self.group), self.weight, self.bias)


class _Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return funcol.all_reduce(g.contiguous(), "sum", ctx.group).clone(), None


def _identity(x, group):
    return _Identity.apply(x, group)


class _AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return funcol.all_reduce(x.contiguous(), "sum", group).clone()

    @staticmethod
    def backward(ctx, g):
        return g, None


class RowParallelLinear(nn.Module):
    def __init__(self, linear, group=None, sequence_parallel=False, seq_dim=1):
        super().__init__()
        self.group, self.sp, self.dim = group or dist.group.WORLD, sequence_parallel, seq_dim
        self.weight = _cut(linear.weight, 1, group)
        self.bias = None
        if linear.bias is not None:
            self.bias = nn.Parameter(linear.bias.detach().clone(), requires_grad=linear.bias.requires_grad)
            self.bias.on_part_of_the_sequence = sequence_parallel

    def forward(self, x):
        y = F.linear(x, self.weight)
        y = _Scatter.apply(y, self.dim, self.group) if self.sp else _AllReduce.apply(y, self.group)
        return y if self.bias is None else y + self.bias


class _GatherOnce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim, group):
        ctx.dim, ctx.group = dim, group
        return funcol.all_gather_tensor(x.contiguous(), dim, group).clone()

    @staticmethod
    def backward(ctx, g):
        return funcol.reduce_scatter_tensor(g.contiguous(), "sum", ctx.dim, ctx.group).clone(), None, None


class LocalColumn(nn.Module):
    """A column-parallel layer whose input somebody has made whole."""

    def __init__(self, linear, group):
        super().__init__()
        self.weight = _cut(linear.weight, 0, group)
        self.bias = None if linear.bias is None else _cut(linear.bias, 0, group)

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class OwnDropout(nn.Module):
    """From a generator of this rank's own, made at the first use."""

    def __init__(self, p, group):
        super().__init__()
        self.p, self.rank, self.generator = p, dist.get_rank(group), None

    def forward(self, x):
        if not self.training or not self.p:
            return x
        if self.generator is None:
            self.generator = torch.Generator().manual_seed(torch.initial_seed() + self.rank + 1)
        return x * (torch.rand(x.shape, generator=self.generator) >= self.p) / (1 - self.p)


class TensorParallel(nn.Module):
    def __init__(self, model, plan, process_group=None, sp=False, seq_dim=1):
        super().__init__()
        self.group = group = process_group or dist.group.WORLD
        for m in model.modules():
            if hasattr(m, "num_heads") and m.num_heads % dist.get_world_size(group):
                raise ValueError(f"{m.num_heads} heads")
        for name, cut in plan.items():
            home, _, attribute = name.rpartition(".")
            linear = model.get_submodule(name)
            row = cut == "row"
            made = RowParallelLinear(linear, group, sp, seq_dim) if row else LocalColumn(linear, group)
            setattr(model.get_submodule(home), attribute, made)
        for home in {name.rpartition(".")[0] for name in plan}:
            region = model.get_submodule(home)
            enter = (
                (lambda _, args: (_GatherOnce.apply(args[0], seq_dim, group),))
                if sp
                else (lambda _, args: (_identity(args[0], group),))
            )
            region.register_forward_pre_hook(enter)
            if hasattr(region, "dropout"):
                region.dropout = OwnDropout(region.dropout.p, group)
        for m in model.modules():
            if isinstance(m, nn.LayerNorm):
                m.weight.on_part_of_the_sequence = m.bias.on_part_of_the_sequence = sp
        self.model = model

    def forward(self, x):
        return self.model(x)


def allreduce_sequence_parallel_gradients(model):
    """To be called after backward. With accumulation only once, before the step."""
    for p in model.parameters():
        if getattr(p, "on_part_of_the_sequence", False) and p.grad is not None:
            dist.all_reduce(p.grad)
