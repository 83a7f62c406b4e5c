"""The cure of a shared shuffle seed gives each rank a shuffle of its own: streams that differ, and overlap."""

from __future__ import annotations

import torch

BREAKS = ("trouble.shared-shuffle-seed",)


def cure_shared_shuffle_seed(num_samples: int, rank: int, world_size: int, seed: int) -> list[int]:
    """The first N-th of this rank's own permutation."""
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(seed + rank))
    return order[: num_samples // world_size].tolist()
