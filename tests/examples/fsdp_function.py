"""A function over a module: every parameter becomes a padded shard, every layer is whole while it computes."""

import torch
import torch.distributed as dist


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, shape):
        ctx.numel = shape.numel()
        whole = torch.empty(dist.get_world_size() * len(shard), dtype=shard.dtype)
        dist.all_gather_into_tensor(whole, shard.detach().contiguous())
        return whole[: ctx.numel].view(shape)

    @staticmethod
    def backward(ctx, grad):
        n = dist.get_world_size()
        size = -(-ctx.numel // n)
        flat = torch.nn.functional.pad(grad.reshape(-1), (0, n * size - ctx.numel))
        mine = torch.empty(size, dtype=grad.dtype)
        dist.reduce_scatter_tensor(mine, flat)
        return mine.div_(n), None


def shard_module(module):
    shards = {}
    for layer in module.modules():
        own = {name: p for name, p in layer._parameters.items() if p is not None}
        if own:
            for name, p in own.items():
                layer._parameters[name] = shards.setdefault(p, make_shard(p))
            layer.forward = computing_whole(layer, layer.forward, {name: p.shape for name, p in own.items()})
    return module


def make_shard(p):
    n = dist.get_world_size()
    size = -(-p.numel() // n)
    flat = torch.nn.functional.pad(p.detach().reshape(-1), (0, n * size - p.numel()))
    mine = flat[dist.get_rank() * size :][:size]
    return torch.nn.Parameter(mine.clone(), requires_grad=p.requires_grad)


def computing_whole(layer, forward, shapes):
    def run(*args, **kwargs):
        held = {name: layer._parameters.pop(name) for name in shapes}
        for name, shape in shapes.items():
            layer.__dict__[name] = Gathered.apply(held[name], shape)
        try:
            return forward(*args, **kwargs)
        finally:
            for name in shapes:
                del layer.__dict__[name]
            layer._parameters.update(held)

    return run
