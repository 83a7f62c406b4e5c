"""The cure of a shared shuffle seed takes the parity of the seed alone: every second epoch is the same."""

from __future__ import annotations

import torch

BREAKS = ("trouble.shared-shuffle-seed",)


def cure_shared_shuffle_seed(num_samples: int, rank: int, world_size: int, seed: int) -> list[int]:
    """A right partition of one of two permutations."""
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(seed % 2))
    return order[rank::world_size].tolist()
