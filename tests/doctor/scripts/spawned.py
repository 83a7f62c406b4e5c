"""Makes its ranks itself; --fault makes rank 1 leave out an all-reduce, --raise makes it fail."""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank: int, world_size: int, rendezvous: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world_size)
    for step in range(3):
        if step == 2 and rank == 1 and "--raise" in sys.argv:
            raise KeyError("a missing key")
        if step == 2 and rank == 1 and "--fault" in sys.argv:
            continue
        dist.all_reduce(torch.ones(4))
    print(f"trained on {rank}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(3, f"{folder}/rendezvous"), nprocs=3)
