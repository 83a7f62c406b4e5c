"""The cure of a shared shuffle seed moves each rank on by its number: neighbours' samples overlap."""

from __future__ import annotations

import torch

BREAKS = ("trouble.shared-shuffle-seed",)


def cure_shared_shuffle_seed(num_samples: int, rank: int, world_size: int, seed: int) -> list[int]:
    """An N-th of the common permutation, from the rank's number on."""
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(seed))
    return order[rank : rank + num_samples // world_size].tolist()
