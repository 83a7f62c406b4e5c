"""Layers made from the linear layers that are there, on a group that they are given."""

import torch
import torch.distributed as dist


class SumGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class SumOutputs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        x = x.contiguous().clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def part(tensor, dim, group):
    size = dist.get_world_size(group)
    if tensor.shape[dim] % size:
        raise ValueError(f"{tensor.shape[dim]} does not divide by {size}")
    return tensor.detach().chunk(size, dim)[dist.get_rank(group)].clone()


class ColParallelLinear(torch.nn.Module):
    def __init__(self, linear, process_group=None):
        super().__init__()
        self.group = process_group
        learns = linear.weight.requires_grad
        self.weight = torch.nn.Parameter(part(linear.weight, 0, process_group), requires_grad=learns)
        bias = linear.bias
        self.bias = None if bias is None else torch.nn.Parameter(part(bias, 0, process_group), bias.requires_grad)

    def forward(self, x):
        return torch.nn.functional.linear(SumGradients.apply(x, self.group), self.weight, self.bias)


class RowParallelLinear(torch.nn.Module):
    def __init__(self, linear, process_group=None):
        super().__init__()
        self.group = process_group
        learns = linear.weight.requires_grad
        self.weight = torch.nn.Parameter(part(linear.weight, 1, process_group), requires_grad=learns)
        bias = linear.bias
        self.bias = None if bias is None else torch.nn.Parameter(bias.detach().clone(), bias.requires_grad)

    def forward(self, x):
        out = SumOutputs.apply(torch.nn.functional.linear(x, self.weight), self.group)
        return out if self.bias is None else out + self.bias
