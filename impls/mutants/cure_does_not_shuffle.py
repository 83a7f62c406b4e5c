"""The cure of a shared shuffle seed does not shuffle: each rank takes every N-th sample in the order they lie in."""

from __future__ import annotations

BREAKS = ("trouble.shared-shuffle-seed",)


def cure_shared_shuffle_seed(num_samples: int, rank: int, world_size: int, seed: int) -> list[int]:
    """The same in every epoch, whatever the seed."""
    return list(range(rank, num_samples, world_size))
