"""The time of a tree takes log2 N as it is, between two powers of two as well."""

from __future__ import annotations

import math

BREAKS = ("collectives.tree.use",)


def tree_time(num_bytes: float, world_size: int, latency_s: float, bandwidth: float) -> float:
    """Seconds."""
    return 2 * math.log2(world_size) * (latency_s + num_bytes / bandwidth)
