"""The last rank has a batch less, and leaves the others in their last all-reduce."""

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for _ in range(5 if rank == world_size - 1 else 6):
        dist.all_reduce(torch.ones(8))  # waited for in vain
    dist.destroy_process_group()


main()
