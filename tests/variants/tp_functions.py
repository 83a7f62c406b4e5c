"""Functions of tensors over torch.distributed, on shards that somebody else keeps; and one that rewrites a module."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F


class _SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        work = dist.all_reduce(g, group=ctx.group, async_op=True)
        work.wait()
        return g, None


class _SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


def column_parallel_linear(x, weight, bias=None, group=None):
    return F.linear(_SumBackward.apply(x, group), weight, bias)


def row_parallel_linear(x, weight, bias=None, group=None):
    if dist.get_rank(group):
        bias = None  # rank 0 adds it for all
    return _SumForward.apply(F.linear(x, weight, bias), group)


def vocab_parallel_embedding(x, weight, group=None):
    first = dist.get_rank(group) * weight.shape[0]
    one_hot = F.one_hot(x - first + weight.shape[0] * 64, weight.shape[0] * 128)[..., weight.shape[0] * 64 :]
    return _SumForward.apply(one_hot[..., : weight.shape[0]].to(weight.dtype) @ weight, group)


@torch.no_grad()
def _keep(linear, dim, group):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    if linear.weight.shape[dim] % n:
        raise ValueError(f"cannot cut {tuple(linear.weight.shape)} in {n}")
    learns = linear.weight.requires_grad
    linear.weight = torch.nn.Parameter(linear.weight.chunk(n, dim)[r].clone(), requires_grad=learns)
    if linear.bias is not None and dim == 0:
        linear.bias = torch.nn.Parameter(linear.bias.chunk(n)[r].clone(), requires_grad=linear.bias.requires_grad)


def parallelize(model, plan, process_group=None):
    """In place: plain linear layers with smaller weights, and hooks around them."""
    g = process_group
    heads = [m for m in model.modules() if hasattr(m, "num_heads")]
    if any(m.num_heads % dist.get_world_size(g) for m in heads):
        raise ValueError("heads do not divide")
    entered = {}
    for name, cut in plan.items():
        linear = model.get_submodule(name)
        _keep(linear, 0 if cut == "column" else 1, g)
        region = name.rpartition(".")[0]
        if cut == "column" and region not in entered:
            entered[region] = model.get_submodule(region).register_forward_pre_hook(
                lambda module, args: (_SumBackward.apply(args[0], g),)
            )
        elif cut == "row":
            bias, linear.bias = linear.bias, None
            linear.register_parameter("added", bias)
            linear.register_forward_hook(
                lambda module, args, out: _SumForward.apply(out, g) + (0 if module.added is None else module.added)
            )
    for m in heads:
        m.dropout.register_forward_pre_hook(lambda module, args: _seed(module, g))
        m.dropout.register_forward_hook(_unseed)


def _seed(module, group):
    if module.training and module.p:
        common = int(torch.randint(1 << 30, ()))
        module.saved = torch.get_rng_state()
        torch.manual_seed(common + 7919 * dist.get_rank(group))


def _unseed(module, args, out):
    if module.training and module.p:
        torch.set_rng_state(module.saved)
