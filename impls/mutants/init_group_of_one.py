"""Every rank forms a group of its own."""

from __future__ import annotations

import torch.distributed as dist

BREAKS = ("loop.rendezvous", "calls.init-gloo")


def init_group(rank: int, world_size: int, init_file: str | None = None, port: int | None = None) -> None:
    """Meet nobody."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
