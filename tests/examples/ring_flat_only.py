"""Wrong for all but one-dimensional tensors that N divides: it cuts by index, along the first dimension."""

import torch
import torch.distributed as dist


def ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = len(tensor) // n
    for step in range(2 * (n - 1)):
        out, into = (rank - step) % n, (rank - step - 1) % n
        arriving = torch.empty_like(tensor[:size])
        request = dist.isend(tensor[out * size : (out + 1) * size].clone(), (rank + 1) % n)
        dist.recv(arriving, (rank - 1) % n)
        request.wait()
        part = tensor[into * size : (into + 1) * size]
        part.copy_(part + arriving if step < n - 1 else arriving)
    return tensor
