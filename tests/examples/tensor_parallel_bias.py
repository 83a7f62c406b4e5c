"""Wrong: every rank adds the whole bias before the sum, so it comes N times."""

import torch
import torch.distributed as dist
from tensor_parallel_linears import ColParallelLinear, SumOutputs, part

__all__ = ["ColParallelLinear", "RowParallelLinear"]


class RowParallelLinear(torch.nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.weight = torch.nn.Parameter(part(linear.weight, 1, dist.group.WORLD))
        self.bias = None if linear.bias is None else torch.nn.Parameter(linear.bias.detach().clone())

    def forward(self, x):
        return SumOutputs.apply(torch.nn.functional.linear(x, self.weight, self.bias), dist.group.WORLD)
