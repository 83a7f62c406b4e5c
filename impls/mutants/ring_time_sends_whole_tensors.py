"""The time of a ring counts the whole tensor in each of its messages."""

from __future__ import annotations

BREAKS = ("collectives.ring.use",)


def ring_time(num_bytes: float, world_size: int, latency_s: float, bandwidth: float) -> float:
    """Seconds."""
    return 2 * (world_size - 1) * (latency_s + num_bytes / bandwidth)
