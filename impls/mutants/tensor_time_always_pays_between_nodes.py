"""What tensor parallelism waits for is reckoned with the links between nodes, even where all ranks are in one node."""

from __future__ import annotations

from impls.reference.network.formulas import ring_time

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
    return 4 * num_layers * ring_time(num_bytes, world_size, between_latency_s, between_bandwidth)
