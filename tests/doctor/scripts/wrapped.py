"""All operations go through one function, which rank 0 calls once too often: gloo takes it for the others' next."""

import torch
import torch.distributed as dist


def mean(values: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(values)
    return values / dist.get_world_size()


dist.init_process_group("gloo")
mean(torch.ones(4))
if dist.get_rank() == 0:
    mean(torch.ones(4))  # the fault
mean(torch.ones(4))
