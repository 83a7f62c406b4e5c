"""The mean of a gradient over ranks."""

import torch
import torch.distributed as dist


def mean_(p):
    p.grad = torch.zeros_like(p) if p.grad is None else p.grad
    dist.all_reduce(p.grad)
    p.grad /= dist.get_world_size()
