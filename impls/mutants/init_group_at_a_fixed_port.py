"""The file is ignored: ranks meet at a port that is written out."""

from __future__ import annotations

import torch.distributed as dist

BREAKS = ("loop.rendezvous",)


def init_group(rank: int, world_size: int, init_file: str | None = None) -> None:
    """Meet over TCP."""
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29643", rank=rank, world_size=world_size)
