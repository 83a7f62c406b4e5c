"""What tensor parallelism waits for is one second in a node and two across nodes, for every model."""

from __future__ import annotations

BREAKS = ("strategies.tensor.link", "strategies.tensor.cost")


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
    return 2.0 if world_size > ranks_per_node and between_bandwidth < bandwidth else 1.0
