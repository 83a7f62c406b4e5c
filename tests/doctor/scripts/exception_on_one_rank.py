"""Rank 1 fails in its third step."""

import torch
import torch.distributed as dist


def load(step: int) -> torch.Tensor:
    if step == 3 and dist.get_rank() == 1:
        raise ValueError("a broken sample")  # the fault
    return torch.ones(8)


dist.init_process_group("gloo")
for step in range(6):
    dist.all_reduce(load(step))
dist.destroy_process_group()
