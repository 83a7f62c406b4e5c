"""Layers made from sizes, on the process group that an initialising function keeps in this module."""

import torch
import torch.distributed as dist

_STATE = {"group": None, "size": 0, "rank": -1}


def initialize_model_parallel(tensor_model_parallel_size):
    if tensor_model_parallel_size != dist.get_world_size():
        raise ValueError("one group of all ranks is all that there is here")
    _STATE.update(group=dist.group.WORLD, size=tensor_model_parallel_size, rank=dist.get_rank())


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad, group=_STATE["group"])
        return grad


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().clone()
        dist.all_reduce(x, group=_STATE["group"])
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(_STATE["size"])]
        dist.all_gather(parts, x.contiguous(), group=_STATE["group"])
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.chunk(_STATE["size"], dim=-1)[_STATE["rank"]].contiguous()


class _Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.chunk(_STATE["size"], dim=-1)[_STATE["rank"]].contiguous()

    @staticmethod
    def backward(ctx, grad):
        parts = [torch.empty_like(grad) for _ in range(_STATE["size"])]
        dist.all_gather(parts, grad.contiguous(), group=_STATE["group"])
        return torch.cat(parts, dim=-1)


def per_rank(features):
    if features % _STATE["size"]:
        raise ValueError(f"{features} features for {_STATE['size']} ranks")
    return features // _STATE["size"]


class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, in_features, out_features, bias=True, gather_output=True):
        super().__init__()
        self.gather_output = gather_output
        self.weight = torch.nn.Parameter(torch.empty(per_rank(out_features), in_features))
        self.bias = torch.nn.Parameter(torch.zeros(per_rank(out_features))) if bias else None

    def forward(self, x):
        out = torch.nn.functional.linear(_Copy.apply(x), self.weight, self.bias)
        return _Gather.apply(out) if self.gather_output else out


class RowParallelLinear(torch.nn.Module):
    def __init__(self, in_features, out_features, bias=True, input_is_parallel=False):
        super().__init__()
        self.input_is_parallel = input_is_parallel
        self.weight = torch.nn.Parameter(torch.empty(out_features, per_rank(in_features)))
        self.bias = torch.nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x):
        x = x if self.input_is_parallel else _Split.apply(x)
        out = _Reduce.apply(torch.nn.functional.linear(x, self.weight))
        return out if self.bias is None else out + self.bias
