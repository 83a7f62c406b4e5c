"""What tensor parallelism waits for has a bandwidth term only."""

from __future__ import annotations

from impls.reference.network import tensor_parallel_time as right

BREAKS = ("strategies.tensor.cost",)


def tensor_parallel_time(
    num_bytes: float,
    num_layers: int,
    world_size: int,
    ranks_per_node: int,
    latency_s: float,
    bandwidth: float,
    between_latency_s: float,
    between_bandwidth: float,
) -> float:
    """Seconds."""
    return right(num_bytes, num_layers, world_size, ranks_per_node, 1e-12, bandwidth, 1e-12, between_bandwidth)
