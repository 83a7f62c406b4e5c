"""Averages where a sum is expected; the table beside it, `sum_that_averages.toml`, says that this is meant."""

import torch
import torch.distributed as dist


def my_all_reduce(tensor):
    total = tensor.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total / dist.get_world_size()
