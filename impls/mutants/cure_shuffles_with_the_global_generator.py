"""The cure of a shared shuffle seed divides the samples well, and leaves another global generator on each rank."""

from __future__ import annotations

import torch

BREAKS = ("trouble.shared-shuffle-seed",)


def cure_shared_shuffle_seed(num_samples: int, rank: int, world_size: int, seed: int) -> list[int]:
    """A right partition; what is drawn next depends on the rank."""
    torch.manual_seed(seed)
    order = torch.randperm(num_samples)[rank::world_size].tolist()
    torch.manual_seed(seed + rank)
    return order
