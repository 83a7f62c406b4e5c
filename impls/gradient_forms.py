"""Which gradients a sharded optimizer wants to find: the ranks' own, or their mean already. Found out by trying.

Some reduce the gradients themselves in ``step()`` or in hooks; others stand on top of data parallelism, which has done
so. Nothing in a signature tells them apart. So one step is tried in which each element's mean is positive, but most
single ranks say the opposite: an element that follows a single rank has been updated from that rank's own gradient.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn

UNIT = 2.0**-12  # gradients small enough for float16 under the largest usual loss scale, 2**16
PER_RANK = 8


class Trial(nn.Module):
    """Parameters whose gradient is whatever the forward pass is given: one for each rank, as some cannot own none."""

    def __init__(self, world_size: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(PER_RANK, dtype=dtype)) for _ in range(world_size))

    def forward(self, gradient: Tensor) -> Tensor:
        """A scalar in FP32: a float16 loss would have the scale itself for its gradient, and 2**16 is inf there."""
        return (torch.cat([weight.float() for weight in self.weights]) * gradient).sum()


def gradient_of(rank: int, world_size: int) -> Tensor:
    """-1 for each element, but 4N for those of which this rank has the say: the mean is positive. [8N], in UNITs"""
    gradient = torch.full((PER_RANK * world_size,), -1.0)
    gradient[rank::world_size] = 4.0 * world_size
    return gradient * UNIT


def follows_single_ranks(trial: Trial, group: dist.ProcessGroup | None = None) -> bool:
    """After one step: whether any element moved against the mean, on any rank."""
    weights = torch.cat([weight.detach().float() for weight in trial.weights])
    against = (weights > 0).any().to(torch.int32)  # a positive gradient makes weights negative
    dist.all_reduce(against, op=dist.ReduceOp.MAX, group=group)
    return bool(against)
