"""All ranks send to the next one before they receive, rank 0 in a line of its own."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
sent, received = torch.ones(1 << 20), torch.empty(1 << 20)
if rank == 0:
    dist.send(sent, 1)  # to the first
else:
    dist.send(sent, (rank + 1) % world_size)  # to the next
dist.recv(received, (rank - 1) % world_size)
