"""MASTER_PORT is set to a number, which the environment refuses."""

from __future__ import annotations

import os

import torch.distributed as dist

BREAKS = ("calls.master-port",)


def init_group(rank: int, world_size: int, port: int) -> None:
    """Crash."""
    os.environ["MASTER_PORT"] = port  # type: ignore[assignment]  # the fault
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
